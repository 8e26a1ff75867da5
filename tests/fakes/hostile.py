"""Responses of a hostile Admin API: large, endless, slow, deeply nested, or causing patterns to backtrack."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping

from aiohttp import web

from tests.fakes.adminapi import Instead

PIECE = b"x" * 2**16
Answer = Callable[[web.Request], "web.StreamResponse | tuple[int, Iterable[bytes], float]"]


def _endless(first: bytes, piece: bytes) -> Iterable[bytes]:
    yield first
    while True:
        yield piece


def _error(text: str) -> Answer:
    return lambda request: web.json_response({"error_msg": text}, status=400)


ANSWERS: Mapping[str, tuple[str, Answer]] = {
    "title": ("PUT", lambda request: web.Response(text="<title>" * 150_000, status=400)),
    "code": ("PUT", _error('[string "' * 100_000)),
    "quotes": ("PUT", _error("with \"'" * 100_000)),
    "large error": ("PUT", lambda request: (500, (PIECE for _ in range(300 * 2**20 // len(PIECE))), 0.0)),
    "large answer": ("PUT", lambda request: (200, _endless(b'{"key":"', PIECE), 0.0)),
    "endless list": ("GET", lambda request: (200, _endless(b'{"list":[{"value":{}}', b',{"value":{}}' * 5000), 0.0)),
    "endless record": ("GET", lambda request: (200, _endless(b'{"list":[{"value":"', PIECE), 0.0)),
    "deep list": ("GET", lambda request: (200, [b'{"list":[' + b'{"a":[' * 2_000_000], 0.0)),
    "slow list": ("GET", lambda request: (200, _endless(b'{"list":[', b" "), 0.2)),
    "slow answer": ("PUT", lambda request: (200, _endless(b"{", b" "), 0.2)),
}
"""Name → the method, and its response: a response, or status, pieces and seconds between two pieces."""


def answering(name: str) -> Instead:
    """Return the override that gives a `FakeAdminApi` one of these responses."""
    method, make = ANSWERS[name]

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if request.method != method:
            return None
        made = make(request)
        return made if isinstance(made, web.StreamResponse) else await _pour(request, *made)

    return answer


def refusing(words: str = "no") -> Instead:
    """Return the override that rejects each route with a long message that ends with the body."""

    async def answer(request: web.Request) -> web.StreamResponse | None:
        if request.method != "PUT" or "/routes/" not in request.path:
            return None
        sent = (await request.read()).decode()[:100_000]
        return web.Response(text=json.dumps({"error_msg": f'{words}: {sent} with "{sent}"'}), status=400)

    return answer


async def _pour(request: web.Request, status: int, pieces: Iterable[bytes], pause: float) -> web.StreamResponse:
    reply = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
    reply.enable_chunked_encoding()
    await reply.prepare(request)
    for piece in pieces:
        await reply.write(piece)
        await asyncio.sleep(pause)
    return reply
