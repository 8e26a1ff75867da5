"""Conditions that never hold."""

import pytest

from tests.unit.apisix_ingress.lint.test_assumed import GATEWAY, OURS, lint
from tests.unit.apisix_ingress.lint.test_lint import ROUTE, SERVICE

HTTP_ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared}]
  rules: [{matches: [{path: {type: %s, value: '%s'}}], backendRefs: [{name: web, port: 80}]}]
"""
PATH = "spec.rules[0].matches[0].path.value"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("/(", "missing )"),
        ("/)", "unbalanced parenthesis"),
        ("/[a", "unterminated character set"),
        ("/a{2,1}", "min repeat greater than max repeat"),
        (r"/\Q(\E", ""),
        ("/(?i)a(?=b)", ""),
        ("/a{2}{3}", "multiple repeat"),
    ],
)
def test_a_pattern_that_cannot_be_compiled_is_found_at_its_field(pattern: str, why: str) -> None:
    message = f"the regular expression cannot be compiled: {why}; correct it, since the condition never holds"
    got = lint(SERVICE, GATEWAY, OURS, HTTP_ROUTE % ("RegularExpression", pattern))
    assert got == ([("error", PATH, message)] if why else [])


def test_a_pattern_of_an_apisix_route_is_checked() -> None:
    exprs = "        exprs: [{subject: {scope: Header, name: a}, op: RegexMatch, value: 'a['}]\n"
    got = lint(SERVICE, (ROUTE % "web").replace("      backends", f"{exprs}      backends"))
    assert [each[:2] for each in got] == [("error", "spec.http[0].match.exprs[0].value")]


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [("PathPrefix", "/*", "/"), ("PathPrefix", "/api/*", "/api"), ("RegularExpression", "/.*", ""), ("Exact", "/", "")],
)
def test_an_asterisk_at_the_end_of_a_path_is_found(kind: str, value: str, found: str) -> None:
    got = lint(SERVICE, GATEWAY, OURS, HTTP_ROUTE % (kind, value))
    assert [each[:2] for each in got] == ([("warning", PATH)] if found else [])
    assert [f"write {found!r} with type PathPrefix" in each[2] for each in got] == [True] * len(got)


def test_settings_of_a_gateway_proxy_without_effect_are_found() -> None:
    proxy = """\
apiVersion: apisix.apache.org/v1alpha1
kind: GatewayProxy
metadata: {name: proxy}
spec:
  provider: {type: ControlPlane}
  publishService: a/b
  statusAddress: [192.0.2.1]
  plugins: [{name: key-auth, enabled: true}]
  pluginMetadata: {http-logger: {}}
"""
    assert ("warning", "spec.publishService") in [each[:2] for each in lint(proxy)]
