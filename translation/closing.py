"""Closing records: what a gateway gets under the id of a route that it rejects.

Without the route, requests for its path reach the next shorter path of the host, which may lack its protection. A
closing record has the same match and responds with 503. `gateway.sync.closing` decides when it is written. Stream
routes have none: streams are matched by port and server name, not by a shorter path, and no plugin rejects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import FrozenJson, JsonObject, list_in
from apisix_ingress.model.records import NO_NAMES, Record
from translation.core.text_checks import quoted
from translation.plugins.exposure import BACKENDS, exposure

ABORT: Mapping[str, JsonObject] = {"fault-injection": {"abort": {"http_status": 503}}}
"""The plugins of a route that responds with 503."""

_ANSWERS: tuple[Mapping[str, JsonObject], ...] = (ABORT, {})
"""A route without plugins and backend responds with 503 as well (contract: Admin API fact 18): a gateway whose settings
lack the plugin accepts it. With the plugin, the error log of the gateway has no line for each request."""

_KEPT = ("id", "name", "desc", "labels", "host", "hosts", "priority")
_PATHS = ("uri", "uris")
_CONDITIONS = ("methods", "vars", "remote_addr", "remote_addrs", "filter_func")
_MOST = 3
"""Hosts, and paths, that a message names."""


def closings(record: Record) -> Iterator[Record]:
    """Yield the records that may replace a rejected route; a gateway should get the first one that it accepts.

    The first ones match the same requests. A gateway rejects these as well if a condition of the route is invalid. If
    the route may guard its path, the last ones then match every request for the path: which requests the route guards
    is not known. Without a guard, other routes for the path continue to serve.
    """
    if record.key.kind != "routes":
        return
    body = record.body
    matches: list[JsonObject] = [_fields(body, (*_KEPT, *_PATHS, *_CONDITIONS))]
    if exposure(body) < Exposure.OPEN:
        matches.append(_fields(body, _KEPT) | {"uris": list(dict.fromkeys(map(_prefix, _paths(body))))})
    for match in matches:
        for plugins in _ANSWERS:
            yield replace(record, body={**match, "plugins": dict(plugins)}, meant=NO_NAMES, secrets=())


def is_closed(body: FrozenJson) -> bool:
    """Return whether a route only responds with 503, as closing records do; the body may come from a gateway."""
    has_backend = any(name in body for name in (*BACKENDS, "plugin_config_id"))
    return not has_backend and any((body.get("plugins") or {}) == answer for answer in _ANSWERS)


def requests_of(body: FrozenJson) -> str:
    """Return the hosts and paths that a route matches, for a message."""
    hosts = [str(body["host"])] if "host" in body else [str(host) for host in list_in(body.get("hosts"))]
    return f"{_some(hosts) or 'every host'}, {_some(_paths(body))}"


def _fields(body: FrozenJson, names: Iterable[str]) -> JsonObject:
    return {name: body[name] for name in names if name in body}


def _paths(body: FrozenJson) -> list[str]:
    return [str(body["uri"])] if "uri" in body else [str(path) for path in list_in(body.get("uris"))]


def _prefix(path: str) -> str:
    """Return a path up to its first `*`, which is a wildcard."""
    head, star, _ = path.partition("*")
    return head + star


def _some(items: list[str]) -> str:
    left = len(items) - _MOST
    return " ".join([*map(quoted, items[:_MOST]), *([f"and {left} more"] if left > 0 else [])])
