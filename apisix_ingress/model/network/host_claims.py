"""Host claims: the hosts that an object names, and the wildcards above them, so that the owner of a host can be found.

Derived from raw specs, like every index, so that untranslatable objects have claims as well. The port of a stream rule
without a host is claimed like a host, as `:9100`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.objects import ASSIGNED_HOSTS, CustomObject, Namespace

MOST_NAMES = 20_000
"""Limit of hosts and the wildcards above them per object; an object with more claims no hosts and is rejected."""

EVERY_HOST = "*"

NO_HOST = "_"
"""The host that gateways give to requests without one (nginx: `server_name _`); it only belongs to a namespace that it
is assigned to."""

ASSIGNABLE = (EVERY_HOST, NO_HOST)
"""Hosts that only an operator can give to a namespace."""

SHARED_WITH = "apisix.apache.org/share-hosts-with"
"""Annotation of an object: the namespaces that may use the hosts that it names, separated by commas."""

_ALIAS = "/server-alias"

_WITH_PORT = ValuePattern(r"(\[.*\]|[^:]+):[0-9]+")


def claimed_hosts(obj: CustomObject) -> tuple[str, ...]:
    """Return the hosts that an object names, without duplicates; empty if there are too many."""
    hosts = _hosts(obj)
    return hosts if _count(hosts) <= MOST_NAMES else ()


def has_too_many(obj: CustomObject) -> bool:
    """Return whether an object names more hosts than the limit."""
    return _count(_hosts(obj)) > MOST_NAMES


def claimed_name(host: str) -> str:
    """Return the form in which a host is claimed: canonical, without a port, which gateways ignore in matching."""
    found = _WITH_PORT.fullmatch(host) if ":" in host else None
    return canonical_host(found[1] if found else host)


def claimed_port(port: object) -> str:
    """Return the claim of a stream rule without a host."""
    return f":{port}"


def is_ownable(host: str) -> bool:
    """Return whether a host is a name or a wildcard of whole labels; `*a.com` matches hosts such as `other-a.com`."""
    return (not host.startswith("*") or host.startswith("*.")) and not has_colon(host) and host != NO_HOST


def has_colon(host: str) -> bool:
    """Return whether a host without its port holds a colon that belongs neither to an address nor to a claimed port."""
    return ":" in host[1:] and not host.startswith("[")


def wildcards_over(host: str) -> Iterator[str]:
    """Yield the wildcards that also match a host, the most specific first."""
    at = host.find(".", 2 if host.startswith("*.") else 0)
    while at >= 0:
        yield f"*{host[at:]}"
        at = host.find(".", at + 1)


def names_over(obj: CustomObject) -> Iterable[str]:
    """Return the wildcards over the hosts of an object: the values under which it is found from above."""
    return _over(claimed_hosts(obj))


def assigned_hosts(item: Namespace) -> tuple[str, ...]:
    """Return the hosts that are assigned to a Namespace, without names that cannot be owned."""
    hosts = map(claimed_name, texts_in(item.meta.annotations.get(ASSIGNED_HOSTS, "")))
    found = tuple(dict.fromkeys(host for host in hosts if is_ownable(host) or host in ASSIGNABLE))
    return found if _count(found) <= MOST_NAMES else ()


def assigned_over(item: Namespace) -> Iterable[str]:
    """Return the wildcards over the hosts that are assigned to a Namespace."""
    return _over(assigned_hosts(item))


def shares_with(obj: CustomObject, namespace: str) -> bool:
    """Return whether an object lends the hosts that it names to a namespace."""
    return namespace in texts_in(obj.meta.annotations.get(SHARED_WITH, ""))


def lent_hosts(obj: CustomObject) -> Iterable[str]:
    """Return the hosts that an object lends to other namespaces, with its own namespace: it can lend only there."""
    if SHARED_WITH not in obj.meta.annotations:
        return ()
    return [lent_key(obj.meta.namespace, host) for host in claimed_hosts(obj)]


def lent_key(namespace: str, host: str) -> str:
    """Return the index value of objects in a namespace that lend a host."""
    return f"{namespace}/{host}"


def aliases_of(obj: CustomObject) -> list[str]:
    """Return the aliases of the hosts of an Ingress of ingress-nginx, by any prefix of the annotation."""
    given = (text for name, text in obj.meta.annotations.items() if name.endswith(_ALIAS))
    found = (alias for text in given for alias in texts_in(text.replace(" ", "").lower()))
    return [alias for alias in found if not alias.startswith("~")]


def texts_in(text: str) -> list[str]:
    """Return the items of a comma-separated list."""
    return [item.strip() for item in text.split(",") if item.strip()]


def _over(hosts: Iterable[str]) -> dict[str, None]:
    return {wildcard: None for host in hosts for wildcard in wildcards_over(host)}


def _count(hosts: tuple[str, ...]) -> int:
    """Return the number of names and wildcards above them; only approximate beyond the limit."""
    over: dict[str, None] = {}
    for host in hosts:
        if len(hosts) + len(over) > MOST_NAMES:
            break
        over |= dict.fromkeys(wildcards_over(host))
    return len(hosts) + len(over)


def _hosts(obj: CustomObject) -> tuple[str, ...]:
    found = (*HOST_READERS[obj.meta.kind](obj.spec), *(aliases_of(obj) if obj.meta.kind == "Ingress" else ()))
    return tuple(dict.fromkeys(claimed_name(host) for host in found if isinstance(host, str) and host))


def _ingress(spec: FrozenJson) -> Iterator[object]:
    yield from (mapping_in(rule).get("host") for rule in list_in(spec.get("rules")))
    for entry in list_in(spec.get("tls")):
        yield from list_in(mapping_in(entry).get("hosts"))


def _route(spec: FrozenJson) -> Iterator[object]:
    for rule in list_in(spec.get("http")):
        yield from list_in(mapping_in(mapping_in(rule).get("match")).get("hosts"))
    for rule in list_in(spec.get("stream")):
        match = mapping_in(mapping_in(rule).get("match"))
        yield match.get("host") or claimed_port(match.get("ingressPort"))


def _tls(spec: FrozenJson) -> Iterator[object]:
    yield from list_in(spec.get("hosts"))


def _hostnames(spec: FrozenJson) -> Iterator[object]:
    yield from list_in(spec.get("hostnames"))


def _listeners(spec: FrozenJson) -> Iterator[object]:
    """Yield the ports of a Gateway, and the hostnames that only routes of its own namespace may use."""
    for listener in map(mapping_in, list_in(spec.get("listeners"))):
        if listener.get("protocol") in ("TCP", "UDP"):
            yield claimed_port(listener.get("port"))
        elif mapping_in(mapping_in(listener.get("allowedRoutes")).get("namespaces")).get("from", "Same") == "Same":
            yield listener.get("hostname")


HOST_READERS: Mapping[str, Callable[[FrozenJson], Iterator[object]]] = {
    "Ingress": _ingress,
    "ApisixRoute": _route,
    "ApisixTls": _tls,
    "Gateway": _listeners,
    "ListenerSet": _listeners,
    **dict.fromkeys(("HTTPRoute", "GRPCRoute", "TLSRoute"), _hostnames),
}
"""Kind → the hosts in its spec: every kind with the index of hosts."""
