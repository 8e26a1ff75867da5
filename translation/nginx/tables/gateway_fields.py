"""Fields of records to which annotations lead and whose values gateways limit, as data.

A gateway rejects the whole route if one value does not fit, and requests then match a shorter path. Therefore no value
is written that a field does not accept: the translation writes another one, or closes the path.
Source: the schemas of APISIX 3.18; a test compares them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import FrozenJson

LONGEST_TIMEOUT = 2_147_483
"""Seconds of the longest timeout: gateways count milliseconds in 31 bits."""

LARGEST_COUNT = 2**31 - 1
"""The largest number of certificates in a chain, which gateways read as a C integer."""

_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class GatewayField:
    """A field, and the annotations whose values it gets, changed or not.

    Attributes:
        record: The plugin, or the kind of the record.
        path: The field there, with dots; `[]` for each item of a list.
        accepts: What the gateway accepts, in JSON Schema.
        annotations: The annotations, without prefix.
        config: The keys of the ConfigMap.
    """

    record: str
    path: str
    accepts: FrozenJson
    annotations: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    _pattern: TextPattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pattern", TextPattern(self.accepts.get("pattern", "")))

    def fits(self, value: object) -> bool:
        """Return whether the field accepts a text or a number."""
        if isinstance(value, str):
            least, most = self.accepts.get("minLength", 0), self.accepts.get("maxLength", _LONGEST)
            is_text = self.accepts["type"] == "string"
            return bool(is_text and least <= len(value) <= most) and self._pattern.found(value)
        if not isinstance(value, int | float):
            return False
        above, least = self.accepts.get("exclusiveMinimum", -math.inf), self.accepts.get("minimum", -math.inf)
        return bool(above < value and least <= value <= self.accepts.get("maximum", math.inf))


_HOST_PATTERN = r"^\*$|^\*?[0-9a-zA-Z-._\[\]:]+$"
_POSITIVE: FrozenJson = {"type": "number", "exclusiveMinimum": 0}
_STATUS: FrozenJson = {"type": "integer", "minimum": 200, "maximum": 599}

REQUEST_HOST = GatewayField(
    "proxy-rewrite", "host", {"type": "string", "pattern": r"^[0-9a-zA-Z-.]+(:\d{1,5})?$"}, ("upstream-vhost",)
)
REQUEST_PATH = GatewayField(
    "proxy-rewrite",
    "uri",
    {"type": "string", "pattern": r"^\/.*", "minLength": 1, "maxLength": _LONGEST},
    ("rewrite-target",),
)
COOKIE_KEY = GatewayField(
    "upstreams", "key", {"type": "string", "pattern": "^[a-zA-Z0-9-_]+$"}, ("session-cookie-name", "upstream-hash-by")
)
ADDED_HEADER = GatewayField(
    "response-rewrite",
    "headers.add[]",
    {"type": "string", "pattern": "^[^:]+:[^:]*[^/]$"},
    ("session-cookie-path", "session-cookie-domain", "session-cookie-name"),
)
REMOVED_HEADER = GatewayField(
    "response-rewrite", "headers.remove[]", {"type": "string", "pattern": "^[^:]+$"}, config=("hide-headers",)
)
ROUTE_HOST = GatewayField("routes", "hosts[]", {"type": "string", "pattern": _HOST_PATTERN}, ("server-alias",))
SERVER_NAME = GatewayField("ssls", "snis[]", {"type": "string", "pattern": _HOST_PATTERN}, ("server-alias",))
AUTHORITY = GatewayField(
    "ssls", "client.ca", {"type": "string", "minLength": 128, "maxLength": 65_536}, ("auth-tls-secret",)
)
ORIGINS = GatewayField(
    "cors",
    "allow_origins_by_regex[]",
    {"type": "string", "minLength": 1, "maxLength": _LONGEST},
    ("cors-allow-origin",),
)
LOCATION = GatewayField(
    "redirect",
    "uri",
    {
        "type": "string",
        "minLength": 2,
        "pattern": r"(\\\$[0-9a-zA-Z_]+)|\$\{([0-9a-zA-Z_]+)\}|\$([0-9a-zA-Z_]+)|(\$|[^$\\]+)",
    },
    ("permanent-redirect", "temporal-redirect", "app-root", "auth-tls-error-page", "rewrite-target"),
)

FIELDS = (
    REQUEST_HOST,
    REQUEST_PATH,
    COOKIE_KEY,
    ADDED_HEADER,
    REMOVED_HEADER,
    ROUTE_HOST,
    SERVER_NAME,
    AUTHORITY,
    ORIGINS,
    LOCATION,
    GatewayField(
        "redirect",
        "ret_code",
        {"type": "integer", "minimum": 200},
        ("permanent-redirect-code", "temporal-redirect-code"),
        ("http-redirect-code",),
    ),
    GatewayField(
        "client-control",
        "max_body_size",
        {"type": "integer", "minimum": 0},
        ("proxy-body-size",),
        ("proxy-body-size",),
    ),
    GatewayField("limit-req", "rate", _POSITIVE, ("limit-rps", "limit-rpm")),
    GatewayField("limit-req", "burst", {"type": "number", "minimum": 0}, ("limit-burst-multiplier",)),
    GatewayField("limit-req", "rejected_code", _STATUS, config=("limit-req-status-code",)),
    GatewayField("limit-count", "rejected_code", _STATUS, config=("limit-req-status-code",)),
    GatewayField("limit-conn", "rejected_code", _STATUS, config=("limit-conn-status-code",)),
    GatewayField("gzip", "comp_level", {"type": "integer", "minimum": 1, "maximum": 9}, config=("gzip-level",)),
    GatewayField("gzip", "min_length", {"type": "integer", "minimum": 1}, config=("gzip-min-length",)),
    *(
        GatewayField("routes", f"timeout.{name}", _POSITIVE, (f"proxy-{name}-timeout",), (f"proxy-{name}-timeout",))
        for name in ("connect", "send", "read")
    ),
    GatewayField("upstreams", "retries", {"type": "integer", "minimum": 0}, ("proxy-next-upstream-tries",)),
    GatewayField("ssls", "client.depth", {"type": "integer", "minimum": 0}, ("auth-tls-verify-depth",)),
)


def misfits(record: str, body: FrozenJson) -> Iterator[tuple[str, object]]:
    """Yield the fields of a record, or of the configuration of a plugin, with the values that a gateway rejects."""
    for each in FIELDS:
        if each.record == record:
            values = _values(body, each.path.replace("[]", ".[]").split("."))
            yield from ((each.path, value) for value in values if not each.fits(value))


def _values(value: Any, path: list[str]) -> Iterator[object]:
    """Yield the values of a field that exist."""
    if not path:
        yield value
    elif path[0] == "[]":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])
