"""Durations in the gateway's format: numbers of seconds, integers if possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apisix_ingress.model.json import JsonObject

if TYPE_CHECKING:
    from crds.v2.common import Timeout

DEFAULT_TIMEOUT = 60
"""Seconds; the default of an absent part of a timeout (v1-behaviour.md §1.1.1)."""

DEFAULT_TIMEOUTS: tuple[float, float, float] = (DEFAULT_TIMEOUT, DEFAULT_TIMEOUT, DEFAULT_TIMEOUT)
"""Connect, send, read."""


def seconds(value: float) -> int | float:
    """Return a number of seconds in the gateway's format: 5 rather than 5.0, and 0.5."""
    return int(value) if value == int(value) else value


def timeout_parts(timeout: Timeout) -> tuple[float, float, float]:
    """Return connect, send and read; a part that is absent or not positive is the default."""
    connect, send, read = (
        part if part and part > 0 else DEFAULT_TIMEOUT for part in (timeout.connect, timeout.send, timeout.read)
    )
    return connect, send, read


def timeout_body(parts: tuple[float, float, float]) -> JsonObject:
    """Return the `timeout` of a route or an upstream."""
    connect, send, read = parts
    return {"connect": seconds(connect), "send": seconds(send), "read": seconds(read)}
