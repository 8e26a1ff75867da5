"""Canaries: a canary Ingress takes a share of the requests for the Service of another Ingress with its host and path.

The canary belongs to the backend: it takes its share at every location with that backend, on every host. As in
ingress-nginx, canaries of all namespaces take part, unless a host belongs to a namespace (`host_ownership`): then the
canary needs the host to be its own or shared with it.

Source: mergeAlternativeBackends of ingress-nginx 1.15 (internal/ingress/controller/controller.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from translation.ingress_spec import ServiceBackend
from translation.nginx.effects.balancing.backends import (
    claim,
    cookie_name,
    port_number,
    scheme_of,
    service_values,
)
from translation.nginx.effects.branches import Site
from translation.nginx.options import CATCH_ALL
from translation.nginx.servers import Location, own_locations
from translation.nginx.sources import (
    BackendKey,
    Source,
    backend_key,
    canaries_on,
    in_order,
    sources_of_host,
    sources_of_service,
)
from translation.nginx.tables.values import Values

_HEX = "0123456789abcdef"

_MANY_HOSTS = 16
"""Hosts of a Service above which all canaries are read instead of those of each host."""


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


def reads_underscores(site: Site) -> bool:
    """Return whether the header that selects a canary has an underscore in its name.

    As in nginx, the variable of `X_Canary` has the value of the header `X-Canary`, so `X_Canary` has to be dropped.
    """
    found = _canary_of(site, site.location.backend) if site.location.backend else None
    return found is not None and "_" in found[0].values.text("canary-by-header")


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
    header = f"http_{name.lower().replace('-', '_')}" if name else ""
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
    """Return the canary of a backend: the Ingress that says its share, and its Service."""
    main, known = backend_key(site.namespace, backend), site.services.canaries
    if main not in known:
        known[main] = next(_canaries(site, main), None)
    return known[main]


def _canaries(site: Site, main: BackendKey) -> Iterator[tuple[Source, ServiceBackend]]:
    """Yield the canaries of a backend, the oldest first."""
    found: dict[ObjectKey, tuple[Source, ServiceBackend]] = {}
    for host in _hosts_of(site, main):
        for canary, service in _shares(site, host).get(main, ()):
            found.setdefault(canary.meta.key, (canary, service))
    for canary in in_order(canary for canary, _ in found.values()):
        service = found[canary.meta.key][1]
        policy = None if _is_foreign(site, canary) else _policy(site, backend_key(canary.meta.namespace, service))
        if policy is not None:
            yield policy, service


def _hosts_of(site: Site, main: BackendKey) -> Iterable[str]:
    """Return the hosts that use the Service of a backend, or if there are many, those with canaries."""
    view, options, nginx = site.builder.view, site.builder.options, site.nginx
    found: dict[str, None] = {}
    for source in sources_of_service(view, options, nginx, *main[:2]):
        found |= dict.fromkeys(source.hosts)
        if len(found) > _MANY_HOSTS:
            return dict.fromkeys(host for canary in canaries_on(view, options, nginx) for host in canary.hosts)
    return found


def _is_foreign(site: Site, canary: Source) -> bool:
    """Return whether a canary is in a namespace that may not use the host of the location."""
    namespace = canary.meta.namespace
    return namespace != site.namespace and bool(site.builder.owners.refusal(namespace, _name(site.server.host)))


def _name(host: str) -> str:
    return "" if host == CATCH_ALL else host


def _shares(site: Site, host: str) -> Mapping[BackendKey, Sequence[tuple[Source, ServiceBackend]]]:
    """Return for each backend of a host the canaries there, the oldest first, with their Services."""
    known = site.services.shares
    if host in known:
        return known[host]
    found: dict[BackendKey, list[tuple[Source, ServiceBackend]]] = {}
    known[host] = found
    view, options, nginx = site.builder.view, site.builder.options, site.nginx
    canaries = list(canaries_on(view, options, nginx, host))
    mains = [each for each in sources_of_host(view, options, nginx, host) if not each.canary] if canaries else []
    if not canaries or (not mains and host != CATCH_ALL):
        return found
    server = own_locations(host, mains)
    places: dict[BackendKey, int] = {}
    for place, location in enumerate(server.values()):
        places.setdefault(_backend_of(location), place)
    numbers = {at: place for place, at in enumerate(server)}
    for canary in canaries:
        if site.builder.owners.refusal(canary.meta.namespace, _name(host)):
            continue
        for at, service in _wanted(canary, host, server):
            # A Service that the host serves itself is the canary only of locations before its own.
            own = places.get(backend_key(canary.meta.namespace, service), len(server))
            if at in server and numbers[at] < own:
                found.setdefault(_backend_of(server[at]), []).append((canary, service))
    return found


def _wanted(
    canary: Source, host: str, server: Iterable[tuple[str, bool]]
) -> Iterator[tuple[tuple[str, bool], ServiceBackend]]:
    """Yield the locations of a host of which a canary asks for a share: its paths, and for a default backend, all."""
    default = canary.spec.default_backend
    if host == CATCH_ALL and default and default.service:
        yield from ((at, default.service) for at in server)
    for path in canary.paths(host):
        if path.backend.service:
            yield (path.path, path.path_type == "Exact"), path.backend.service


def _policy(site: Site, backend: BackendKey) -> Source | None:
    """Return the canary whose annotations say the share of a backend; None if another Ingress named it first."""
    namespace, name, _ = backend
    known = site.services.backends
    for source in sources_of_service(site.builder.view, site.builder.options, site.nginx, namespace, name):
        if source.meta.key not in known:
            known[source.meta.key] = frozenset(source.backends())
        if backend in known[source.meta.key]:
            return source if source.canary else None
    return None


def _backend_of(location: Location) -> BackendKey:
    """Return the backend of a location; empty for that of the controller."""
    if location.source is None or location.backend is None:
        return "", "", 0
    return backend_key(location.source.meta.namespace, location.backend)
