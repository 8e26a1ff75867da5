"""Responses of the Admin API: a status, the headers that every response has, and a body."""

from __future__ import annotations

import orjson

from e2e.devgateway.dataplane.error_pages import HTML, JSON, error_page
from e2e.devgateway.dataplane.http1 import Headers

CORS = ("Access-Control-Allow-Origin", "*")

Answer = tuple[int, Headers, bytes]


def json_answer(status: int, body: object, *extra: tuple[str, str]) -> Answer:
    """Return a JSON response with the trailing newline that the gateway sends."""
    return status, [*JSON, CORS, *extra], orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS) + b"\n"


def text_answer(status: int, body: str, *extra: tuple[str, str]) -> Answer:
    """Return a text response; the gateway labels it as JSON nevertheless."""
    return status, [*JSON, CORS, *extra], body.encode()


def page_answer(status: int) -> Answer:
    """Return an error page."""
    return status, [*HTML, CORS], error_page(status)
