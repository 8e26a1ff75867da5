"""Tenants with the same hosts: with `host_ownership: namespace`, no tenant gets requests for hosts of another one.

This holds in any order of events and with invalid objects.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pytest

from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.routing import choose
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import World
from tests.property.isolation.tenants import SHUFFLES, TENANTS, Wanting
from tests.unit.translation.objects import OPTIONS, make, pem, secret, service
from tests.unit.translation.settling import bodies, prepare, settle
from translation.nginx.options import KIND as NGINX_HOST
from translation.nginx.options import NginxOptions

STRICT = replace(OPTIONS, host_ownership="namespace")
NGINX = replace(STRICT, nginx=NginxOptions())
"""Ingresses of the other class are served as well."""

HOSTS = (
    "a.x.test",
    "b.x.test",
    "c.a.x.test",
    "A.x.test.",
    "a.x.test:80",
    "*.x.test",
    "*.test",
    "*.a.x.test",
    "*x.test",
)
ASKED = ("a.x.test", "b.x.test", "c.a.x.test", "d.a.x.test", "z.x.test", "x.test", "y.test", "other.org")
PATHS = ("/*", "/login", "/login/*")


@dataclass(frozen=True, kw_only=True)
class Wish(Wanting):
    """An object with hosts: an attacker's has a high priority; a broken one cannot be translated."""

    path: str
    priority: int
    broken: bool


def manifest(wish: Wish) -> JsonObject:
    name = "none" if wish.broken else "web"
    if wish.kind == "ApisixTls":
        pair = {"name": "none" if wish.broken else "pair", "namespace": wish.namespace}
        return wish.with_spec({"hosts": [*wish.hosts] or ["own.test"], "secret": pair})
    if wish.kind == "Ingress":
        target = {"service": {"name": name, "port": {"number": 80}}}
        http = {"paths": [{"path": wish.path.rstrip("*"), "pathType": "Prefix", "backend": target}]}
        hosts = [host.lower().removesuffix(".") for host in wish.hosts if ":" not in host and not host.startswith("*x")]
        return wish.with_spec({"rules": [{"host": host, "http": http} for host in hosts or [""]]})
    if wish.kind == "HTTPRoute":
        path = {"type": "PathPrefix", "value": wish.path.rstrip("*").rstrip("/") or "/"}
        reference = {"name": "web", "port": 80, "namespace": "none"} if wish.broken else {"name": "web", "port": 80}
        filters = [{"type": "ExtensionRef"}] if wish.broken else []
        rule = {"matches": [{"path": path}], "backendRefs": [reference], "filters": filters}
        parents = [{"name": "shared", "namespace": "operator"}]
        return wish.with_spec({"parentRefs": parents, "hostnames": [*wish.hosts], "rules": [rule]})
    match = {"hosts": [*wish.hosts], "paths": [wish.path]}
    backend = {"serviceName": name, "servicePort": 80}
    return wish.with_spec({"http": [{"name": "r", "match": match, "priority": wish.priority, "backends": [backend]}]})


def wish_of(seed: random.Random, number: int) -> Wish:
    kind = seed.choice(("Ingress", "ApisixRoute", "HTTPRoute", "ApisixTls"))
    return Wish(
        namespace=seed.choice(TENANTS),
        name=f"o{number}",
        kind=kind,
        day=seed.randint(1, 6),
        hosts=tuple(seed.sample(HOSTS, seed.randint(0, 2))),
        foreign=kind == "Ingress" and seed.random() < 0.2,
        path=seed.choice(PATHS),
        priority=seed.choice((0, 1, 9999)),
        broken=False,
    )


def named(wish: Wish) -> set[str]:
    """Return the hosts of an object in the form of requests."""
    if wish.kind == "Ingress":
        return {host.lower().removesuffix(".") for host in wish.hosts if ":" not in host and not host.startswith("*x")}
    return {host.lower().removesuffix(".").removesuffix(":80") for host in wish.hosts}


def owner(host: str, wishes: Iterable[Wish], *, nginx: bool) -> str:
    """The reference: the namespace of the oldest object that names a host or a usable wildcard over it."""
    claims = [(wish, name) for wish in wishes if nginx or not wish.foreign for name in named(wish)]
    naming = [wish for wish, name in claims if covers(name, host) and is_usable(wish, name, claims)]
    return min(naming, key=lambda wish: wish.age).namespace if naming else ""


def covers(name: str, host: str) -> bool:
    return name == host or (name.startswith("*.") and host.endswith(name[1:]))


Claims = list[tuple[Wish, str]]


def is_usable(wish: Wish, name: str, claims: Claims) -> bool:
    """A wildcard is usable unless another namespace has an older name below it, which it was the first to cover."""
    wider = [each for each, other in claims if other != name and covers(other, name) and is_usable(each, other, claims)]
    first = min((wish, *wider), key=lambda each: each.age)
    if not name.startswith("*.") or first.namespace != wish.namespace:
        return not name.startswith("*.")
    below = [
        (each, host)
        for each, host in claims
        if each.age < first.age and each.namespace != wish.namespace and host != name and covers(name, host)
    ]
    return not any(_is_first(each, host, name, claims) for each, host in below)


def _is_first(wish: Wish, host: str, wildcard: str, claims: Claims) -> bool:
    """Whether a namespace was the first to name a host, or a wildcard over it that is below another one."""
    between = [each for each, name in claims if name != wildcard and covers(wildcard, name) and covers(name, host)]
    return min(between, key=lambda each: each.age).namespace == wish.namespace


def whose_backend(body: FrozenJson, records: Mapping[RecordKey, Record]) -> str:
    """Return the namespace of the Service of a route; empty if it has no backend."""
    key = RecordKey("upstreams", body.get("upstream_id", ""))
    return str(records[key].body["name"]).split("_")[0] if key in records else ""


def check(found: World, wishes: Iterable[Wish], *, nginx: bool) -> None:
    wishes = tuple(wishes)
    records = found.desired.records("default")
    routes = [RouteFacts(key.id, record.body) for key, record in records.items() if key.kind == "routes"]
    owners = {key: found.desired.owners_of(key)[0] for key in records}
    whose = {
        key.id: whose_backend(records[key].body, records) if each.kind == NGINX_HOST else each.namespace
        for key, each in owners.items()
        if each.kind != "Gateway"
    }
    kept = {wish.namespace for wish in wishes if wish.broken}
    for host in ASKED:
        want = owner(host, wishes, nginx=nginx)
        # An object that cannot be translated keeps its records for hosts without an owner.
        permitted = {want, ""} if want else {"", *kept}
        for path in ("/", "/login", "/login/x", "/other"):
            asked = choose(ProbeRequest("GET", "http", host, path), routes).candidates
            assert {whose.get(candidate.route.id, "") for candidate in asked} <= permitted
        shown = {
            whose[key.id]
            for key, record in records.items()
            if key.kind == "ssls"
            and "snis" in record.body
            and any(sni == host or (sni[0] == "*" and host.endswith(sni[1:])) for sni in record.body["snis"])
        }
        assert shown <= permitted


def there_is(found: World, wish: Wish) -> None:
    found.stores[wish.kind].set(RESOURCES[wish.kind].decode(manifest(wish)))


def surroundings() -> list[JsonObject]:
    pair = pem(1)
    fields = {"tls__crt": pair.certificate, "tls__key": pair.key}
    parameters = {"controllerName": OPTIONS.ingress_class_controller}
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    return [
        make("GatewayClass", "apisix", namespace="", spec=parameters),
        make("Gateway", "shared", namespace="operator", spec={"gatewayClassName": "apisix", "listeners": [listener]}),
        make("IngressClass", "nginx", namespace="", spec={"controller": "k8s.io/ingress-nginx"}),
        *(service(namespace=tenant) for tenant in TENANTS),
        *(secret("pair", namespace=tenant, **fields) for tenant in TENANTS),
    ]


@pytest.mark.parametrize("number", range(SHUFFLES))
def test_no_request_for_a_host_reaches_another_namespace(number: int) -> None:
    nginx = number % 2 == 0
    options = NGINX if nginx else STRICT
    seed = random.Random(number)
    wishes = [wish_of(seed, index) for index in range(8)]
    found, loop = prepare(*surroundings(), options=options)
    there: dict[ObjectKey, Wish] = {}
    for _ in range(50):
        wish = seed.choice(wishes)
        if wish.key in there and seed.random() < 0.4:
            found.stores[wish.kind].delete(wish.key)
            del there[wish.key]
        else:
            # Edits, too: other hosts, and objects that cannot be translated.
            if seed.random() < 0.5:
                hosts = tuple(seed.sample(HOSTS, seed.randint(0, 2)))
                wish = replace(wish, hosts=hosts, broken=seed.random() < 0.4)
            there_is(found, wish)
            there[wish.key] = wish
        if seed.random() < 0.5:
            loop.settle()
            check(found, there.values(), nginx=nginx)
    loop.settle()
    check(found, there.values(), nginx=nginx)
    for wish in there.values():
        there_is(found, replace(wish, broken=False))
    loop.settle()
    whole = [manifest(replace(wish, broken=False)) for wish in there.values()]
    seed.shuffle(whole)
    fresh = settle(*surroundings(), *whole, options=options)
    # An object that cannot be translated keeps its records, which depend on history: a port is not part of a server
    # name.
    if any(problem.severity == "error" for report in fresh.reports.values() for problem in report.problems):
        return
    assert bodies(found) == bodies(fresh)
    assert {key: each.problems for key, each in found.reports.items()} == {
        key: each.problems for key, each in fresh.reports.items()
    }
    check(found, there.values(), nginx=nginx)
