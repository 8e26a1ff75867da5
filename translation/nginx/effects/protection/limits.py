"""Limits for each client address: requests per second and minute, and concurrent connections."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Site
from translation.nginx.tables.values import networks

_BURST = 5


def limits_id(site: Site) -> str:
    """Add the record with the limits of an Ingress and return its id; empty without limits.

    Routes with the same plugin config share its counters, as the paths and hosts of an Ingress do in nginx.
    """
    source = site.location.source
    plugins = _limits(site)
    if source is None or not plugins:
        return ""
    builder = site.builder
    name = names.nginx_limits(source.meta.namespace, source.meta.name)
    body = builder.stamp("plugin_configs", name)
    body.pop("name", None)
    builder.record("plugin_configs", name, body | {"plugins": plugins})
    return builder.refer("plugin_configs", name)


def _limits(site: Site) -> dict[str, JsonObject]:
    """Return the plugins that limit requests. Beside a limit per second, the one per minute counts in windows."""
    values, config = site.values, site.config
    plugins: dict[str, JsonObject] = {}
    meta = _spared(values.text("limit-allowlist") or values.text("limit-whitelist"))
    burst = values.number("limit-burst-multiplier", _BURST)
    second, minute = max(0, values.number("limit-rps")), max(0, values.number("limit-rpm"))
    status = config.number("limit-req-status-code")
    rate = second or minute / 60
    if rate:
        of_burst = (second or minute) * burst
        plugins["limit-req"] = {
            "rate": rate, "burst": of_burst, "key": "remote_addr", "nodelay": True, "rejected_code": status, **meta
        }  # fmt: skip
    if second and minute:
        plugins["limit-count"] = {
            "count": minute * (burst + 1), "time_window": 60, "key": "remote_addr", "rejected_code": status, **meta
        }  # fmt: skip
    connections = max(0, values.number("limit-connections"))
    if connections:
        plugins["limit-conn"] = {
            "conn": connections, "burst": 0, "default_conn_delay": 0.1, "key": "remote_addr",
            "rejected_code": config.number("limit-conn-status-code"), **meta,
        }  # fmt: skip
    return plugins


def _spared(text: str) -> JsonObject:
    spared = networks(text) if text else None
    return {"_meta": {"filter": [["remote_addr", "!", "ipmatch", list(spared)]]}} if spared else {}
