"""Hosts that belong to one namespace, across HTTPRoutes, Gateways, Ingresses and ApisixRoutes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import CLASS, gateway, listener, route, rule, secure, set_of
from tests.unit.translation.objects import OPTIONS, make, pem, secret, service
from tests.unit.translation.objects import rule as apisix_rule
from tests.unit.translation.settling import bodies, settle
from translation.core.options import Options
from translation.nginx.options import NginxOptions

OWNED = replace(OPTIONS, host_ownership="namespace", nginx=NginxOptions())
ALL = {"namespaces": {"from": "All"}}
SHARED = gateway(listener(allowedRoutes=ALL), listener("tcp", 9100, "TCP", allowedRoutes=ALL))
NGINX = make("IngressClass", "nginx", namespace="", spec={"controller": "k8s.io/ingress-nginx"})
SERVICES = [service(namespace=each) for each in ("default", "victim", "evil")]


def aged(item: JsonObject, age: int) -> JsonObject:
    """Return an object that was created in a certain year."""
    item["metadata"]["creationTimestamp"] = f"20{age:02}-01-01T00:00:00Z"
    return item


def http_route(namespace: str, age: int, *hosts: str, path: str = "/", **rest: Any) -> JsonObject:
    matches = [{"path": {"type": "PathPrefix", "value": path}}]
    parents = rest.pop("parentRefs", [{"name": "gw", "namespace": "default"}])
    spec: dict[str, Any] = {"hostnames": list(hosts)} if hosts else {}
    return aged(route(rule(matches=matches), namespace=namespace, parentRefs=parents, **spec, **rest), age)


def apisix_route(namespace: str, age: int, *hosts: str) -> JsonObject:
    spec = {"http": [apisix_rule(match={"hosts": list(hosts), "paths": ["/login"]})]}
    return aged(make("ApisixRoute", "app", namespace=namespace, spec=spec), age)


def nginx_ingress(namespace: str, age: int, host: str, **annotations: str) -> JsonObject:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/login", "pathType": "Exact", "backend": backend}]
    given = {f"nginx.ingress.kubernetes.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    spec = {"ingressClassName": "nginx", "rules": [{**({"host": host} if host else {}), "http": {"paths": paths}}]}
    return aged(make("Ingress", "app", namespace=namespace, annotations=given, spec=spec), age)


def served(*objects: JsonObject, options: Options = OWNED) -> dict[str, set[str]]:
    """Return namespace → the hosts for which the gateway sends requests to Services there; `*` is every host."""
    found = settle(CLASS, NGINX, *SERVICES, *(each for each in objects), options=options)
    return sent(found)


def certificate(namespace: str) -> JsonObject:
    made = pem(1)
    return secret("cert", namespace=namespace, tls__crt=made.certificate, tls__key=made.key)


def sent(found: World) -> dict[str, set[str]]:
    every = bodies(found)
    got: dict[str, set[str]] = {}
    for path, body in every.items():
        if not path.startswith(("routes/", "stream_routes/")) or "upstream_id" not in body:
            continue
        upstream = every[f"upstreams/{body['upstream_id']}"]
        port = [f":{body['server_port']}"] if "server_port" in body else []
        got.setdefault(str(upstream["name"]).split("_")[0], set()).update(body.get("hosts", port or ["*"]))
    return got


VICTIM = {"victim": {"bank.test"}}


@pytest.mark.parametrize(
    "rival",
    [
        http_route("evil", 20, "bank.test", path="/login"),
        http_route("evil", 20, "*.test"),
        http_route("evil", 20),
        apisix_route("evil", 20, "bank.test"),
        apisix_route("evil", 20, "BANK.test."),
        nginx_ingress("evil", 20, "bank.test"),
        nginx_ingress("evil", 20, "*.test"),
        nginx_ingress("evil", 20, ""),
        route(rule(), kind="GRPCRoute", namespace="evil", parentRefs=[{"name": "gw", "namespace": "default"}]),
    ],
)
def test_no_kind_takes_the_host_of_an_older_http_route(rival: JsonObject) -> None:
    rival["metadata"].setdefault("creationTimestamp", "2020-01-01T00:00:00Z")

    assert served(SHARED, http_route("victim", 10, "bank.test"), rival) == VICTIM


@pytest.mark.parametrize("owner", [nginx_ingress("victim", 10, "bank.test"), apisix_route("victim", 10, "bank.test")])
@pytest.mark.parametrize(
    "rival",
    [
        nginx_ingress("evil", 20, "bank.test"),
        nginx_ingress("evil", 20, "bank.test", canary="true", canary_weight="100"),
        nginx_ingress("evil", 20, "BANK.test"),
        http_route("evil", 20, "bank.test"),
        apisix_route("evil", 20, "bank.test"),
    ],
)
def test_no_kind_takes_the_host_of_an_older_object(owner: JsonObject, rival: JsonObject) -> None:
    if rival["metadata"]["name"] == owner["metadata"]["name"]:
        rival["metadata"]["name"] = "rival"

    assert served(SHARED, owner, rival) == VICTIM


def test_an_alias_of_ingress_nginx_is_not_taken_and_takes_no_host() -> None:
    first = nginx_ingress("victim", 10, "shop.test", server_alias="alias.test")
    second = nginx_ingress("evil", 20, "own.test", server_alias="shop.test,alias.test,other.test")

    got = served(first, second, apisix_route("evil", 30, "alias.test"))

    assert got == {"victim": {"shop.test", "alias.test"}, "evil": {"own.test", "other.test"}}


def test_a_redirect_to_www_does_not_match_the_host_of_another_namespace() -> None:
    redirecting = nginx_ingress("evil", 20, "bank.test", from_to_www_redirect="true")

    found = settle(CLASS, NGINX, *SERVICES, nginx_ingress("victim", 10, "www.bank.test"), redirecting, options=OWNED)

    answered = {host for body in bodies(found).values() if "plugins" in body for host in body.get("hosts", ())}
    assert sent(found)["victim"] == {"www.bank.test"}
    assert not any(
        "www.bank.test" in body.get("hosts", ()) and "redirect" in body["plugins"] and "upstream_id" not in body
        for body in bodies(found).values()
        if "plugins" in body and body.get("uris") == ["/*"] and body.get("priority") == 64
    ), answered


def test_an_ingress_of_nginx_reports_a_host_of_another_namespace() -> None:
    found = settle(
        CLASS, NGINX, *SERVICES, apisix_route("victim", 10, "bank.test"), nginx_ingress("evil", 20, "bank.test"),
        options=OWNED,
    )  # fmt: skip

    problems = found.reports[ObjectKey("Ingress", "evil", "app")].problems
    assert [problem.code for problem in problems] == ["HostNotOwned"]


def test_a_lent_host_is_served_for_both() -> None:
    lending = http_route("victim", 10, "bank.test")
    lending["metadata"]["annotations"] = {"apisix.apache.org/share-hosts-with": "evil"}

    got = served(SHARED, lending, http_route("evil", 20, "bank.test", path="/login"))

    assert got == {"victim": {"bank.test"}, "evil": {"bank.test"}}


def test_routes_of_several_namespaces_share_a_listener_with_hosts_of_their_own() -> None:
    shared = gateway(listener(hostname="*.test", allowedRoutes=ALL))

    got = served(shared, http_route("victim", 10, "a.test"), http_route("evil", 20, "b.test"))

    assert got == {"victim": {"a.test"}, "evil": {"b.test"}}


def test_a_listener_may_have_the_hostname_of_a_route_that_names_its_gateway() -> None:
    shared = gateway(listener(hostname="bank.test", allowedRoutes=ALL))

    assert served(aged(shared, 30), http_route("victim", 10, "bank.test")) == VICTIM


def test_a_hostname_of_a_listener_for_its_own_namespace_is_not_taken() -> None:
    own = aged(gateway(listener(hostname="bank.test")), 10)

    got = served(own, http_route("default", 20), apisix_route("evil", 30, "bank.test"))

    assert got == {"default": {"bank.test"}}


def test_a_certificate_for_a_host_of_another_namespace_is_not_served() -> None:
    theirs = gateway(secure("tls", "cert", hostname="bank.test"), name="theirs")
    theirs["metadata"]["namespace"] = "evil"
    cert = certificate("evil")

    found = settle(
        CLASS, SHARED, *SERVICES, http_route("victim", 20, "bank.test"), aged(theirs, 30), cert, options=OWNED
    )

    assert not [body for path, body in bodies(found).items() if path.startswith("ssls/") and "snis" in body]


def test_a_listener_set_does_not_serve_a_certificate_for_a_host_of_another_namespace() -> None:
    shared = gateway(listener(allowedRoutes=ALL), allowedListeners=ALL)
    theirs = aged(set_of(secure("tls", "cert", hostname="bank.test"), namespace="evil"), 30)
    cert = certificate("evil")

    found = settle(CLASS, shared, *SERVICES, http_route("victim", 20, "bank.test"), theirs, cert, options=OWNED)

    assert not [body for path, body in bodies(found).items() if path.startswith("ssls/") and "snis" in body]


def tcp(namespace: str, age: int, port: int = 9100) -> list[JsonObject]:
    entry = gateway(listener("tcp", port, "TCP"), name="tcp")
    entry["metadata"]["namespace"] = namespace
    parents = [{"name": "tcp"}]
    return [aged(entry, age), aged(route(rule(), kind="TCPRoute", namespace=namespace, parentRefs=parents), age)]


def stream(namespace: str, age: int) -> JsonObject:
    backend = {"serviceName": "web", "servicePort": 80}
    spec = {"stream": [{"name": "s", "protocol": "TCP", "match": {"ingressPort": 9100}, "backend": backend}]}
    return aged(make("ApisixRoute", "stream", namespace=namespace, spec=spec), age)


def assigned(namespace: str, *ports: str) -> JsonObject:
    return make("Namespace", namespace, namespace="", annotations={"apisix.apache.org/hosts": ",".join(ports)})


ITS_PORT = assigned("victim", ":9100")


@pytest.mark.parametrize("owner", [tcp("victim", 10), [stream("victim", 10)]])
@pytest.mark.parametrize("rival", [tcp("evil", 1), [stream("evil", 1)]])
def test_a_port_belongs_to_the_namespace_that_it_is_assigned_to(
    owner: list[JsonObject], rival: list[JsonObject]
) -> None:
    assert served(ITS_PORT, *owner, *rival) == {"victim": {":9100"}}


@pytest.mark.parametrize("first", [tcp("evil", 1), [stream("evil", 1)]])
def test_a_port_that_is_not_assigned_carries_no_connections(first: list[JsonObject]) -> None:
    """If it terminates TLS, its connections are for every host, with the certificates of other namespaces."""
    assert served(*first) == {}


@pytest.mark.parametrize("reference", [{"name": "gw", "namespace": ["x"]}, {"name": {}}, {"kind": [], "name": "gw"}])
def test_a_reference_of_the_wrong_type_does_not_stop_others(reference: JsonObject) -> None:
    """Some clusters have CRDs without validation."""
    rival = http_route("evil", 1, "bank.test", parentRefs=[reference])

    assert served(SHARED, rival, http_route("victim", 10, "bank.test")) == VICTIM


BEHIND = replace(OWNED, listener_ports={9000: 9100})
"""Requests to port 9000 of a Gateway arrive at port 9100 of the gateways."""


@pytest.mark.parametrize("owner", [tcp("victim", 10, 9000), tcp("victim", 10), [stream("victim", 10)]])
@pytest.mark.parametrize("rival", [tcp("evil", 1, 9000), tcp("evil", 1), [stream("evil", 1)]])
def test_a_port_of_the_gateways_belongs_to_one_namespace(owner: list[JsonObject], rival: list[JsonObject]) -> None:
    assert served(ITS_PORT, *owner, *rival, options=BEHIND) == {"victim": {":9100"}}


def test_the_port_of_a_mapped_listener_stays_free_for_stream_rules() -> None:
    rival = stream("app", 20)
    rival["spec"]["stream"][0]["match"]["ingressPort"] = 9000

    app = assigned("app", ":9000")

    got = served(ITS_PORT, app, *tcp("victim", 10, 9000), rival, service(namespace="app"), options=BEHIND)

    assert got == {"victim": {":9100"}, "app": {":9000"}}


def test_a_namespace_holds_the_port_of_the_gateways_behind_its_listener() -> None:
    world = settle(CLASS, *SERVICES, ITS_PORT, *tcp("victim", 10, 9000), options=BEHIND)

    world.host_holders.settle()

    assert world.host_holders.hosts() == (":9100",)


def test_a_listener_lends_its_port_to_the_routes_that_it_allows() -> None:
    parents = [{"name": "gw", "namespace": "default"}]
    app = aged(route(rule(), kind="TCPRoute", namespace="victim", parentRefs=parents), 10)

    assert served(assigned("default", ":9100"), SHARED, app) == {"victim": {":9100"}}
    assert served(SHARED, app) == {}


def test_routes_for_gateways_of_other_controllers_own_no_hosts() -> None:
    elsewhere = http_route("evil", 1, "bank.test", parentRefs=[{"name": "gw", "namespace": "nowhere"}])

    assert served(SHARED, elsewhere, http_route("victim", 10, "bank.test")) == VICTIM
