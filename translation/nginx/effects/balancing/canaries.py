"""The canaries at one host: for each backend that the host uses, the canary Ingresses that take a share there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.state.nginx_canaries import NGINX_CANARY
from translation.core.builder import Builder
from translation.ingress_spec import ServiceBackend
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.servers import Location, Server, own_locations
from translation.nginx.sources import MOST, BackendKey, Source, backend_key, canaries_on, each_of_host

_WITHOUT_MAIN = (
    "the canary gets no requests for {}, as with ingress-nginx: no Ingress without the annotation has this host and a"
    " path of the canary; create it, or remove the annotation"
)
_LAST = 255
"""All characters of names are less than this."""


def canaries_at(builder: Builder, nginx: NginxOptions, server: Server) -> tuple[CustomObject, ...]:
    """Return the canaries at a host with the backends of which they take a share, in the order of ingress-nginx."""
    host, view, options = server.host, builder.view, builder.options
    canaries = list(canaries_on(view, options, nginx, host))
    if not canaries:
        return ()
    locations = own_locations(host, server.sources)
    numbers = {at: place for place, at in enumerate(locations)}
    places: dict[BackendKey, int] = {}
    for place, location in enumerate(locations.values()):
        places.setdefault(_backend_of(location), place)
    found = []
    for canary in canaries:
        if builder.owners.refusal(canary.meta.namespace, "" if host == CATCH_ALL else host):
            continue
        shares: JsonObject = {}
        for at, service in _wanted(canary, host, locations):
            # A Service that the host serves itself is the canary only of locations before its own.
            own = places.get(backend_key(canary.meta.namespace, service), len(locations))
            if at in locations and numbers[at] < own:
                shares.setdefault(backend_text(_backend_of(locations[at])), service.model_dump())
        if shares:
            found.append(CustomObject(_meta(canary, host), {"host": host, "shares": shares}))
    return tuple(sorted(found, key=lambda each: each.meta.age))


def without_main(source: Source, builder: Builder, nginx: NginxOptions) -> Iterator[str]:
    """Yield, for each host of a canary, that no other Ingress has one of its paths there."""
    for host in source.hosts if source.canary else ():
        found = tuple(islice(each_of_host(builder.view, builder.options, nginx, host), MOST))
        mains = tuple(each for each in found if not each.canary)
        every = own_locations(host, mains) if mains or host == CATCH_ALL else {}
        locations = {at: location for at, location in every.items() if location.backend}
        if len(found) < MOST and not any(at in locations for at, _ in _wanted(source, host, locations)):
            yield _WITHOUT_MAIN.format("other requests" if host == CATCH_ALL else host)


def backend_text(backend: BackendKey) -> str:
    """Return a backend as the value of an index."""
    return "/".join(map(str, backend))


def host_of_canary(canary: CustomObject) -> str:
    """Return the host at which an object describes a canary."""
    return str(canary.spec["host"])


def service_of(canary: CustomObject, backend: str) -> ServiceBackend:
    """Return the Service of a canary that takes a share of a backend."""
    return ServiceBackend.model_validate(canary.spec["shares"][backend])


def _meta(canary: Source, host: str) -> Meta:
    """Return metadata whose age sorts as in ingress-nginx: of one second, the last one by name comes first."""
    space, name = canary.meta.namespace, canary.meta.name
    reverse = "".join(chr(_LAST - ord(each)) for each in f"{space}\0{name}")
    return Meta(NGINX_CANARY, space, f"{name} {host}", created=f"{canary.meta.age[0]} {reverse}{chr(_LAST)}")


def _wanted(
    canary: Source, host: str, locations: Iterable[tuple[str, bool]]
) -> Iterator[tuple[tuple[str, bool], ServiceBackend]]:
    """Yield the locations of a host of which a canary takes a share: its paths, and for a default backend, all."""
    default = canary.spec.default_backend
    if host == CATCH_ALL and default and default.service:
        yield from ((at, default.service) for at in locations)
    for path in canary.paths(host):
        if path.backend.service:
            yield (path.path, path.path_type == "Exact"), path.backend.service


def _backend_of(location: Location) -> BackendKey:
    """Return the backend of a location; empty for that of the controller."""
    if location.source is None or location.backend is None:
        return "", "", 0
    return backend_key(location.source.meta.namespace, location.backend)
