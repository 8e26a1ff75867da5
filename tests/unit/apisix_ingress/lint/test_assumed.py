"""Objects that manifests refer to and that are not among the files, and what was not checked without them."""

import pytest

from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.assumed import assume
from apisix_ingress.lint.findings import find
from tests.unit.apisix_ingress.lint.test_lint import ROUTE, SERVICE
from translation.core.options import Options

GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec: {gatewayClassName: apisix, listeners: [{name: http, port: 80, protocol: HTTP}]}
"""
CLASS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: apisix}
spec: {controllerName: %s}
"""
OURS = CLASS % "apisix.apache.org/apisix-ingress-controller"
HTTP_ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec: {parentRefs: [{name: shared%s}], rules: [{backendRefs: [{name: web, port: 80}]}]}
"""
STREAM = """\
apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: stream}
spec: {parentRefs: [{name: shared, sectionName: stream}], rules: [{backendRefs: [{name: web, port: 80}]}]}
"""
TLS = """\
apiVersion: apisix.apache.org/v2
kind: ApisixTls
metadata: {name: web}
spec: {hosts: [web.example.org], secret: {name: web, namespace: default}}
"""
SETTINGS = "apiVersion: apisix.apache.org/v2\nkind: ApisixUpstream\nmetadata: {name: web}\nspec: {retries: 2}\n"
LISTENER_SET = """\
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more}
spec: {parentRef: {name: shared}, listeners: [{name: http, port: 80, protocol: HTTP, hostname: a.example.org}]}
"""
NO_SERVICES = "the files contain no Services of namespace default"
NO_GATEWAY = "Gateway default/shared is not among the files: its listeners may not accept the object"
OF_ANOTHER = "none of its parentRefs refers to a Gateway of this controller"


def lint(*texts: str) -> list[tuple[str, str, str]]:
    """Return the level, path and message of each finding in documents."""
    loaded, options = load(["-"], stdin="---\n".join(texts).encode()), Options()
    found = find(loaded, options, assumed=assume(loaded.objects, options))
    return [(item.level, item.path, item.message) for item in found]


def test_services_of_a_namespace_are_assumed_if_the_files_contain_none_of_it() -> None:
    assert lint(ROUTE % "web") == [("note", "spec.http[0].backends[0]", NO_SERVICES)]
    (other,) = lint(SERVICE.replace("web", "other"), ROUTE % "web")
    assert other[0] == "error"


def test_assumed_services_have_the_ports_that_routes_name() -> None:
    named = (ROUTE % "web").replace("servicePort: 80", "servicePort: http")
    assert lint(named) == [("note", "spec.http[0].backends[0]", NO_SERVICES)]


def test_settings_of_an_unknown_service_are_not_a_mistake() -> None:
    assert lint(SETTINGS) == [("note", "metadata.name", NO_SERVICES)]


def test_a_secret_is_missing_only_if_the_files_contain_secrets() -> None:
    assert lint(TLS) == [("note", "spec.secret.name", "the files contain no Secrets")]
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n"
    assert [level for level, *_ in lint(TLS, secret)] == ["error"]


def test_a_certificate_that_is_created_in_the_cluster_is_not_a_mistake() -> None:
    tls = "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: later}]}}"
    gateway = GATEWAY.replace("listeners: [", f"listeners: [{tls}, ")
    assert [(level, why) for level, _, why in lint(gateway, OURS)] == [("note", "the files contain no Secrets")]


def test_a_gateway_and_its_class_are_assumed() -> None:
    assert lint(SERVICE, HTTP_ROUTE % "") == [("note", "spec.parentRefs", NO_GATEWAY)]
    why = "GatewayClass apisix is not among the files: it may belong to another controller"
    assert lint(SERVICE, GATEWAY, HTTP_ROUTE % "") == [("note", "spec.gatewayClassName", why)]
    assert lint(SERVICE, GATEWAY, OURS, HTTP_ROUTE % "") == []


def test_a_listener_that_a_known_gateway_lacks_is_a_mistake() -> None:
    route = HTTP_ROUTE % ", sectionName: https"
    (got,) = lint(SERVICE, GATEWAY, OURS, route)
    assert got[:2] == ("error", "spec.parentRefs")
    assert lint(SERVICE, route) == [("note", "spec.parentRefs", NO_GATEWAY)]


@pytest.mark.parametrize("kind", ["TCPRoute", "UDPRoute", "TLSRoute"])
def test_routes_of_connections_are_checked_without_their_gateway(kind: str) -> None:
    assert ("note", "spec.parentRefs", NO_GATEWAY) in lint(SERVICE, STREAM % kind)
    assert [level for level, *_ in lint(SERVICE, STREAM % kind)] == ["note"]
    gone = (STREAM % kind).replace("name: web", "name: gone")
    assert "error" in [level for level, *_ in lint(SERVICE, gone)]


def test_objects_of_another_gateway_class_are_not_checked() -> None:
    foreign = CLASS % "example.org/other"
    assert lint(SERVICE, foreign, GATEWAY, HTTP_ROUTE % "", LISTENER_SET) == [
        ("note", "", "its GatewayClass does not exist or belongs to another controller"),
        ("note", "", OF_ANOTHER),
        ("note", "", "its Gateway is not one of this controller"),
    ]


def test_a_route_of_a_mesh_is_not_checked() -> None:
    assert lint(SERVICE, HTTP_ROUTE % ", kind: Service, group: ''") == [("note", "", OF_ANOTHER)]


def test_an_ingress_without_a_class_is_not_checked() -> None:
    ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {}\n"
    why = "it has no class, and no default IngressClass of this controller is among the files"
    assert lint(ingress) == [("note", "", why)]
    other = ingress.replace("spec: {}", "spec: {ingressClassName: other}")
    ((_, _, got),) = lint(other)
    assert got == "ingress class other is served by another controller, or its IngressClass is not among the files"
