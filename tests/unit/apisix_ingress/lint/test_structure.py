"""Mistakes that an API server rejects by the schema of a kind."""

from tests.unit.apisix_ingress.lint.test_assumed import GATEWAY, OURS, lint
from tests.unit.apisix_ingress.lint.test_lint import SERVICE

ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared}]
  hostname: web.example.org
  rules:
  - match: []
    name: null
    backendRefs: [{name: web, port: 80, wieght: 1}%s]
"""


def test_fields_of_a_route_are_checked_as_by_an_api_server() -> None:
    assert lint(SERVICE, GATEWAY, OURS, ROUTE % ", {port: '80'}") == [
        ("warning", "spec.hostname", "unknown field, did you mean hostnames?"),
        ("warning", "spec.rules[0].match", "unknown field, did you mean matches?"),
        ("warning", "spec.rules[0].backendRefs[0].wieght", "unknown field, did you mean weight?"),
        ("error", "spec.rules[0].backendRefs[1].name", "required field is missing"),
        ("error", "spec.rules[0].backendRefs[1].port", "must be of type integer, not string"),
    ]


def test_an_ingress_of_another_controller_is_checked_too() -> None:
    spec = "{ingressClassName: x, rules: [{hosts: a, http: {paths: [{backend: {serviceName: web}}]}}]}"
    got = lint(f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec: {spec}\n")
    assert [(level, path) for level, path, _ in got if level != "note"] == [
        ("warning", "spec.rules[0].hosts"),
        ("error", "spec.rules[0].http.paths[0].pathType"),
        ("error", "spec.rules[0].http.paths[0].backend"),
        ("warning", "spec.rules[0].http.paths[0].backend.serviceName"),
    ]


INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{hosts: [10.0.0.1, Web.example.org]}]
  rules:
  - {host: "web.example.org:80"}
  - {host: 10.0.0.1}
  - host: "*.example.org"
    http:
      paths:
      - {path: shop, pathType: Exact, backend: {serviceName: web, servicePort: 80}}
      - {path: /a/../b, pathType: Prefix, backend: {service: {name: web}, resource: {kind: Bucket, name: web}}}
      - {path: /c//d, pathType: ImplementationSpecific, backend: {resource: {kind: Bucket, name: web}}}
"""


def test_hosts_paths_and_backends_of_an_ingress_are_checked_as_by_an_api_server() -> None:
    got = lint(INGRESS)
    assert [each for each in got if each[0] == "error"] == [
        ("error", "spec.tls[0].hosts[1]", "'Web.example.org' is not a DNS name in lower case"),
        ("error", "spec.rules[0].host", "'web.example.org:80' is not a DNS name in lower case"),
        ("error", "spec.rules[1].host", "'10.0.0.1' is an IP address, not a DNS name"),
        ("error", "spec.rules[2].http.paths[0].path", "must start with /"),
        ("error", "spec.rules[2].http.paths[0].backend", "must have either service or resource"),
        ("error", "spec.rules[2].http.paths[1].path", "must not contain //, /./, /../ or %2f"),
        ("error", "spec.rules[2].http.paths[1].backend", "must have either service or resource"),
    ]
