"""Canaries: a canary Ingress takes a share of the requests for the Service of another Ingress with its host and path.

The canary belongs to the Service: it takes its share at every location with that Service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from translation.ingress_spec import Path, ServiceBackend
from translation.nginx.effects.balancing.backends import (
    claim,
    cookie_name,
    port_number,
    scheme_of,
    service_values,
)
from translation.nginx.effects.branches import Site
from translation.nginx.parsing import host_of
from translation.nginx.sources import Source, canaries_in, sources_of_host
from translation.nginx.tables.values import Values

_HEX = "0123456789abcdef"


def canary_plugins(site: Site, backend: ServiceBackend, main: str, *, first: bool = False) -> dict[str, JsonObject]:
    """Return the plugin that gives a canary its share.

    Args:
        site: The location.
        backend: Its backend.
        main: The upstream of the location.
        first: Whether it is for clients that have no affinity cookie yet.
    """
    found = _canary_of(site, backend)
    if found is None:
        return {}
    source, canary = found
    key = ObjectKey("Service", source.meta.namespace, canary.name)
    values = service_values(site, ObjectKey("Service", site.namespace, backend.name))
    sticky = values.text("affinity") == "cookie"
    fallback = _fallback(site, backend)
    upstream = claim(site, key, canary.port, scheme_of(site), first=first and sticky, fallback=fallback, main=values)
    if not upstream:
        return {}
    decider = ("request_id" if first else f"cookie_{cookie_name(values)}") if sticky else ""
    rules = list(_rules(source.values, upstream, main, decider))
    return {"traffic-split": {"rules": rules}} if rules else {}


def share_pattern(share: int, total: int) -> str:
    """Return a pattern that matches a share of all ids: those whose first hexadecimal digits are low enough."""
    digits = f"{min(0xFFF, max(1, round(0x1000 * share / total))):03x}"
    below = (f"{digits[:place]}[{_HEX[: int(digit, 16)]}]" for place, digit in enumerate(digits) if digit != "0")
    return f"^(?:{'|'.join(below)})"


def _fallback(site: Site, backend: ServiceBackend) -> tuple[ObjectKey, int] | None:
    key = ObjectKey("Service", site.namespace, backend.name)
    service = site.builder.view.get(Service, key)
    number = port_number(service, backend.port) if service and service.type != "ExternalName" else 0
    return (key, number) if number else None


def _rules(values: Values, canary: str, main: str, decider: str) -> Iterator[JsonObject]:
    """Yield the rules in the order in which nginx decides: by header, by cookie, by weight.

    With `decider`, the variable that holds the affinity cookie, the value decides by weight, so that clients stay.
    """
    to_canary = [{"upstream_id": canary, "weight": 1}]
    to_main = [{"upstream_id": main, "weight": 1}]
    name = values.text("canary-by-header")
    header = f"http_{name.lower().replace('-', '_')}" if _readable(name) else ""
    value, pattern = values.text("canary-by-header-value"), values.text("canary-by-header-pattern")
    if header and value:
        yield _rule([header, "==", value], to_canary)
    elif header and pattern:
        yield _rule([header, "~~", pattern], to_canary)
    elif header:
        yield _rule([header, "==", "always"], to_canary)
        yield _rule([header, "==", "never"], to_main)
    cookie = values.text("canary-by-cookie")
    if cookie:
        # Names of cookies are case-insensitive in nginx.
        name = f"(?:^|;\\s*)(?i:{re.escape(cookie)})="
        yield _rule(["http_cookie", "~~", f"{name}always(?:;|$)"], to_canary)
        yield _rule(["http_cookie", "~~", f"{name}never(?:;|$)"], to_main)
    weight = values.number("canary-weight")
    total = max(100, values.number("canary-weight-total", 100))
    share = min(max(0, weight), total)
    if share and decider and share < total:
        yield _rule([decider, "~~", share_pattern(share, total)], to_canary)
    elif share:
        rest = [{"upstream_id": main, "weight": total - share}] if total > share else []
        yield {"weighted_upstreams": [{"upstream_id": canary, "weight": share}, *rest]}


def _rule(condition: list[str], upstreams: list[JsonObject]) -> JsonObject:
    return {"match": [{"vars": [condition]}], "weighted_upstreams": upstreams}


def _canary_of(site: Site, backend: ServiceBackend) -> tuple[Source, ServiceBackend] | None:
    """Return the oldest canary of a Service, with its own Service."""
    known = site.services.canaries
    found = known.get(site.namespace)
    if found is None:
        found = known[site.namespace] = _canaries(site)
    return found.get(backend.name)


def _canaries(site: Site) -> dict[str, tuple[Source, ServiceBackend]]:
    """Return for each Service of a namespace its oldest canary: one with a host and path of the Service."""
    view, options, nginx = site.builder.view, site.builder.options, site.nginx
    used: dict[str, dict[tuple[str, bool], list[str]]] = {}
    found: dict[str, tuple[Source, ServiceBackend]] = {}
    for canary in canaries_in(view, options, nginx, site.namespace):
        for host in dict.fromkeys(host_of(rule.host) for rule in canary.spec.rules):
            sources = sources_of_host(view, options, nginx, host)
            if host not in used:
                used[host] = _services(sources, site.namespace, host)
            for path in canary.paths(host) if any(each.meta.key == canary.meta.key for each in sources) else ():
                service = path.backend.service
                for name in used[host].get(_key(path), ()) if service is not None else ():
                    if service is not None and name != service.name:
                        found.setdefault(name, (canary, service))
    return found


def _services(sources: Iterable[Source], namespace: str, host: str) -> dict[tuple[str, bool], list[str]]:
    """Return the Services of a namespace at each path of a host."""
    found: dict[tuple[str, bool], list[str]] = {}
    for source in sources:
        if source.canary or source.meta.namespace != namespace:
            continue
        for path in source.paths(host):
            if path.backend.service is not None:
                found.setdefault(_key(path), []).append(path.backend.service.name)
    return found


def _key(path: Path) -> tuple[str, bool]:
    return path.path or "/", path.path_type == "Exact"


def _readable(header: str) -> bool:
    """Return whether a client can send a header: nginx drops those with an underscore."""
    return bool(header) and "_" not in header
