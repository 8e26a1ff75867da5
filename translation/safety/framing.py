"""Headers with which a gateway frames its responses. Users must not set them.

A gateway sends `Content-Length: 2` before a body of ten bytes if a plugin sets it. A load balancer that sends the
requests of several clients on one connection takes the other eight bytes for the response to the next request, whose
client and host may be those of another team.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from translation.safety.faults import Fault, Steps

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "response-rewrite": ("headers",),
    "fault-injection": ("abort", "headers"),
    "mocking": ("response_headers",),
    "forward-auth": ("client_headers",),
    "request-id": ("header_name",),
}
"""Plugin → the field that names headers of responses: a mapping, a list of names or of `name: value`, or one name."""

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_WHAT = "sets a header that frames the response, which the gateway has to determine; remove it"


def framing_faults(plugin: str, config: Any) -> Iterator[Fault]:
    """Yield the headers of responses in a plugin that a gateway has to determine itself."""
    field, value = _FIELDS.get(plugin, ()), config
    for name in field:
        value = value.get(name, {}) if isinstance(value, dict) else {}
    for place, name in _names(value, field) if field else ():
        # A gateway replaces _ with - in the names of headers of responses.
        if name.partition(":")[0].strip().lower().replace("_", "-") in _FRAMING:
            yield Fault(place, _WHAT)


def _names(value: Any, place: Steps) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _names(item, (*place, index)) if isinstance(item, str) else ()
    elif isinstance(value, dict):
        for name, below in value.items():
            is_operation = isinstance(below, dict | list)  # set, add or remove
            if not is_operation:
                yield (*place, name), name
            elif name != "remove":
                yield from _names(below, (*place, name))
