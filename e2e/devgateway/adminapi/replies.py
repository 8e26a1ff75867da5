"""What the Admin API answers with: a status, the headers that every answer carries, and a body."""

from __future__ import annotations

import orjson

from e2e.devgateway.dataplane.error_pages import HTML, JSON, error_page
from e2e.devgateway.dataplane.http1 import Headers

CORS = ("Access-Control-Allow-Origin", "*")

Answer = tuple[int, Headers, bytes]


def json_answer(status: int, body: object, *extra: tuple[str, str]) -> Answer:
    """Return a JSON answer with the trailing newline the gateway sends."""
    return status, [*JSON, CORS, *extra], orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS) + b"\n"


def text_answer(status: int, body: str, *extra: tuple[str, str]) -> Answer:
    """Return a text; the gateway labels it as JSON nevertheless."""
    return status, [*JSON, CORS, *extra], body.encode()


def page_answer(status: int) -> Answer:
    """Return the page of an error."""
    return status, [*HTML, CORS], error_page(status)
