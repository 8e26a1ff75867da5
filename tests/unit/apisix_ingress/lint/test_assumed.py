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
        ("note", "", "it belongs to another controller"),
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


POLICY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web}
spec:
  targetRefs: [{group: "", kind: Service, name: web}]
  validation: {hostname: web.example.org, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
"""


def test_a_policy_is_checked_with_the_routes_to_its_target() -> None:
    assert lint(POLICY) == [("note", "", "the files contain no route to its Services")]
    authority, target = "the files contain no ConfigMaps", "Service default/web is not among the files: the policy"
    route = HTTP_ROUTE % ""
    assert [each[2] for each in lint(OURS, GATEWAY, SERVICE, route, POLICY)] == [authority, authority]
    assert f"{target} was not checked with it" in [each[2] for each in lint(OURS, GATEWAY, route, POLICY)]
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    got = lint(OURS, GATEWAY, SERVICE, route, POLICY, other)
    assert [each[:2] for each in got] == [("error", "spec.rules[0].backendRefs[0]"), ("error", "spec.validation")]


def test_a_backend_without_a_port_is_a_mistake_without_its_service() -> None:
    got = lint(OURS, GATEWAY, (HTTP_ROUTE % "").replace(", port: 80", ""))
    assert ("error", "spec.rules[0].backendRefs[0]", "port is missing") in got


def test_listeners_of_a_listener_set_are_checked() -> None:
    tls = "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: gone}]}}"
    more = LISTENER_SET.replace("listeners: [", f"listeners: [{tls}, ")
    gateway = GATEWAY.replace("listeners:", "allowedListeners: {namespaces: {from: All}}, listeners:")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n"
    (got,) = lint(OURS, gateway, more, secret)
    assert got[:2] == ("error", "spec.listeners[0]")
    assert "Secret default/gone does not exist" in got[2]
    (closed,) = lint(OURS, GATEWAY, LISTENER_SET)
    assert closed[:2] == ("error", "spec.parentRef")


PROXY = """\
apiVersion: apisix.apache.org/v1alpha1
kind: GatewayProxy
metadata: {name: other}
spec: {provider: {type: ControlPlane}}
"""


def test_parameters_that_do_not_exist_are_a_mistake_of_their_gateway() -> None:
    parameters = "infrastructure: {parametersRef: {group: apisix.apache.org, kind: GatewayProxy, name: gone}}"
    gateway, other = GATEWAY.replace("spec: {", f"spec: {{{parameters}, "), PROXY
    elsewhere = "the files contain no GatewayProxies"
    route = HTTP_ROUTE % ""
    assert {each[2] for each in lint(OURS, SERVICE, gateway, route)} == {elsewhere}
    (got,) = lint(OURS, gateway, other)
    foreign = GATEWAY.replace("spec: {", f"spec: {{{parameters.replace('GatewayProxy', 'Other')}, ")
    assert [level for level, *_ in lint(foreign)] == ["note"]
    assert [level for level, *_ in lint(foreign, OURS)] == ["error"]
    missing = "GatewayProxy default/gone does not exist; create it or remove the reference"
    assert got == ("error", "spec.infrastructure.parametersRef", missing)
