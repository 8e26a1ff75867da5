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
        ("warning", "spec.rules[0].http.paths[0].backend.serviceName"),
    ]
