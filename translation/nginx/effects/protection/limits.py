"""Limits for each client address: requests per second and minute, and concurrent connections."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Site
from translation.nginx.effects.own_requests import shown_by_ingress, shown_statuses
from translation.nginx.functions.attached import Function
from translation.nginx.functions.limits import LIMIT
from translation.nginx.tables.values import LARGEST, networks

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
    body = builder.new_body("plugin_configs", name)
    body.pop("name", None)
    builder.record("plugin_configs", name, body | {"plugins": plugins})
    return builder.refer("plugin_configs", name)


def is_limited(site: Site) -> bool:
    """Return whether requests are limited."""
    return bool(_rate(site)) or site.values.number("limit-connections") > 0


def limit_functions(site: Site) -> tuple[Function, ...]:
    """Return the function that counts requests, if the status beyond a limit is one that a page is shown for."""
    source, rate = site.location.source, _rate(site)
    if source is None or not rate or not _has_page(site):
        return ()
    wanted = rate | {"id": names.nginx_limits(source.meta.namespace, source.meta.name), "status": _status(site)}
    if shown_statuses(site):
        wanted["shown"] = True
    spared = _spared(site)
    return (Function(LIMIT, {"limits": wanted | ({"spared": spared} if spared else {})}),)


def _has_page(site: Site) -> bool:
    """Return whether an Ingress has pages for requests beyond its rate; its paths share one counter."""
    return str(_status(site)) in shown_by_ingress(site)


def _status(site: Site) -> int:
    return site.config.number("limit-req-status-code")


def _limits(site: Site) -> dict[str, JsonObject]:
    """Return the plugins that limit requests."""
    plugins: dict[str, JsonObject] = {}
    spared = _spared(site)
    rate = _rate(site)
    if rate and not _has_page(site):
        plugins |= limit_plugins(rate | {"status": _status(site), "spared": spared})
    connections = min(max(0, site.values.number("limit-connections")), LARGEST)
    if connections:
        plugins["limit-conn"] = {
            "conn": connections, "burst": 0, "default_conn_delay": 0.1, "key": "remote_addr",
            "rejected_code": site.config.number("limit-conn-status-code"), **_filter(spared),
        }  # fmt: skip
    return plugins


def limit_plugins(wanted: JsonObject) -> dict[str, JsonObject]:
    """Return the plugins that limit requests as the function with these values does, without pages."""
    common = {"key": "remote_addr", "rejected_code": wanted["status"], **_filter(wanted.get("spared", []))}
    plugins = {"limit-req": {"rate": wanted["rate"], "burst": wanted["burst"], "nodelay": True, **common}}
    if "count" in wanted:
        plugins["limit-count"] = {"count": wanted["count"], "time_window": wanted["seconds"], **common}
    return plugins


def _filter(spared: list[str]) -> JsonObject:
    return {"_meta": {"filter": [["remote_addr", "!", "ipmatch", spared]]}} if spared else {}


def _rate(site: Site) -> JsonObject:
    """Return the limits per second and minute; together with one per second, the one per minute counts in windows."""
    values = site.values
    second, minute = values.number("limit-rps"), values.number("limit-rpm")
    if second <= 0 and minute <= 0:
        return {}
    burst = values.number("limit-burst-multiplier", _BURST)
    second, minute = (min(max(0, number), LARGEST) for number in (second, minute))
    found: JsonObject = {"rate": second or minute / 60, "burst": min((second or minute) * burst, LARGEST)}
    return found | ({"count": min(minute * (burst + 1), LARGEST), "seconds": 60} if second and minute else {})


def _spared(site: Site) -> list[str]:
    """Return the networks without limits."""
    text = site.values.text("limit-allowlist") or site.values.text("limit-whitelist")
    return list(networks(text) or ()) if text else []
