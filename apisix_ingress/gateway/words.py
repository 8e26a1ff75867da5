"""The gateway's own words: what a reply of the Admin API says, made fit for a condition, an event and a log.

A reply can repeat what was sent (contract: fact 5), so that what could be a secret is taken out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.redaction import hidden_texts

LIMIT = 1024
"""Longest message, in characters."""

_HIDDEN = "***"
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_PEM = re.compile(r"-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)", re.DOTALL)
_SENSITIVE = re.compile(r"key|secret|token|passw|credential|auth|private", re.IGNORECASE)
# What the gateway says that it was given, up to the last quote: the value may hold some itself.
_ECHO = re.compile(r'\b(with|got) "(?:.*"|.*)', re.DOTALL)
_UNNAMED = r"(?<!property )(?<!plugin )"
_QUOTED = re.compile(rf"""{_UNNAMED}(?:(?<!\w)"[^"]*"|(?<!\w)'[^']*')""")
# The beginning of code that does not compile, and the word at which it does not.
_CODE = re.compile(r"""\[string ".*"\](:\d+:)?|\bnear ['"].*['"]""", re.DOTALL)
# Shorter values are words that any sentence may hold.
_SHORTEST_SECRET = 4


def said(content: bytes, status: int) -> str:
    """Return what a reply says: `error_msg` with `description`, the title of an HTML page, or plain text."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _of_text(content.decode("utf-8", "replace")) or f"HTTP {status}"
    if not isinstance(document, dict):
        return f"HTTP {status}"
    parts = [document.get(name) for name in ("error_msg", "message", "description")]
    return ": ".join(part for part in parts if isinstance(part, str) and part) or f"HTTP {status}"


def scrub(message: str, body: FrozenJson | None = None, *secrets: str) -> str:
    """Return a message on one line, shortened, without PEM blocks and without sensitive values of the body."""
    message = _CODE.sub(_HIDDEN, _PEM.sub(_HIDDEN, message))
    if body is not None:
        message = _without_echoes(message, body)
    hidden = {*secrets, *(_of_body(body) if body is not None else ())}
    for value in sorted(hidden, key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            message = message.replace(value, _HIDDEN)
    message = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    return message if len(message) <= LIMIT else message[: LIMIT - 1] + "…"


def _without_echoes(message: str, body: FrozenJson) -> str:
    """Hide quoted values: any field of a plugin may come from a Secret. Names of properties and plugins stay."""
    message = _ECHO.sub(rf'\1 "{_HIDDEN}"', message)
    values = sorted(set(_texts(body.get("plugins", body))), key=len, reverse=True)
    for value in values:
        if len(value) >= _SHORTEST_SECRET:
            message = re.sub(rf"""{_UNNAMED}(["']){re.escape(value)}\1""", rf"\1{_HIDDEN}\1", message)
    return _QUOTED.sub(lambda quoted: _hidden_if(quoted.group(), values), message)


def _hidden_if(quoted: str, values: list[str]) -> str:
    text, mark = quoted[1:-1], quoted[0]
    is_echo = any(value == text or (len(value) >= _SHORTEST_SECRET and value in text) for value in values)
    return f"{mark}{_HIDDEN}{mark}" if is_echo else quoted


def _texts(value: Any) -> Iterator[str]:
    """Yield every text that is a value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif isinstance(value, str) and value:
        yield value


def _of_text(text: str) -> str:
    title = _TITLE.search(text)
    return title.group(1) if title else ("" if "<" in text[:20] else text)


def _of_body(body: FrozenJson) -> Iterator[str]:
    yield from _sensitive(body, inside=False)
    yield from hidden_texts(body)


def _sensitive(value: Any, *, inside: bool) -> Iterator[str]:
    """Yield every text below a field whose name suggests a secret."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _sensitive(item, inside=inside or bool(_SENSITIVE.search(name)))
    elif isinstance(value, list):
        for item in value:
            yield from _sensitive(item, inside=inside)
    elif inside and isinstance(value, str):
        yield value
