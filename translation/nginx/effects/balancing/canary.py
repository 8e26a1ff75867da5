"""Canaries: a canary Ingress takes a share of the requests for the Service of another Ingress with its host and path.

The canary belongs to the backend: it takes its share at every location with that backend, on every host. As in
ingress-nginx, canaries of all namespaces are considered, unless a host belongs to a namespace (`host_ownership`): then
the namespace of the canary must own the host or share it.

Source: mergeAlternativeBackends of ingress-nginx 1.15 (internal/ingress/controller/controller.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice

from apisix_ingress.model.formats.patterns import escaped_literal
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.state.nginx_canaries import BY_BACKEND, NGINX_CANARY
from apisix_ingress.state.view import oldest
from translation.ingress_spec import ServiceBackend
from translation.nginx.effects.balancing.backends import (
    claim,
    cookie_name,
    port_number,
    scheme_of,
    service_values,
)
from translation.nginx.effects.balancing.canaries import backend_text, host_of_canary, service_of
from translation.nginx.effects.branches import Site
from translation.nginx.options import CATCH_ALL
from translation.nginx.sources import BackendKey, Source, backend_key, sources_of_service
from translation.nginx.tables.values import Values

_HEX = "0123456789abcdef"

_MOST = 64
"""Maximum number of canaries of a backend that are read: nearly always, the oldest one applies."""


def canary_plugins(site: Site, backend: ServiceBackend, main: str, *, first: bool = False) -> dict[str, JsonObject]:
    """Return the plugin that sends a canary its share.

    Args:
        site: The location.
        backend: Its backend.
        main: The upstream of the location.
        first: Whether it is for clients without an affinity cookie.
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
        name = f"(?:^|;\\s*)(?i:{escaped_literal(cookie)})="
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
    """Return the canary of a backend: the Ingress that sets its share, and its Service."""
    main, known = backend_key(site.namespace, backend), site.services.canaries
    if main not in known:
        known[main] = next(_canaries(site, main), None)
    return known[main]


def _canaries(site: Site, main: BackendKey) -> Iterator[tuple[Source, ServiceBackend]]:
    """Yield the canaries of a backend, the oldest first, at most `_MOST`."""
    index = IndexKey(NGINX_CANARY, BY_BACKEND, backend_text(main))
    every = oldest(site.builder.view, CustomObject, index)
    elsewhere = (each for each in every if host_of_canary(each) != site.server.host)
    own = (each for each in site.services.own if index.value in each.spec["shares"])
    for canary in islice(merge(own, elsewhere, key=lambda each: each.meta.age), _MOST):
        namespace, service = canary.meta.namespace, service_of(canary, index.value)
        policy = None if _is_foreign(site, namespace) else _policy(site, backend_key(namespace, service))
        if policy is not None:
            yield policy, service


def _is_foreign(site: Site, namespace: str) -> bool:
    """Return whether a canary is in a namespace that may not use the host of the location."""
    name = "" if site.server.host == CATCH_ALL else site.server.host
    return namespace != site.namespace and bool(site.builder.owners.refusal(namespace, name))


def _policy(site: Site, backend: BackendKey) -> Source | None:
    """Return the canary whose annotations set the share of a backend; None if another Ingress named it first."""
    namespace, name, _ = backend
    known = site.services.backends
    for source in sources_of_service(site.builder.view, site.builder.options, site.nginx, namespace, name):
        if source.meta.key not in known:
            known[source.meta.key] = frozenset(source.backends())
        if backend in known[source.meta.key]:
            return source if source.canary else None
    return None
