"""ApisixRoute: defaults, and what its models refuse."""

import pytest
from pydantic import ValidationError

from crds import parse_spec
from crds.v2.route import ApisixRouteSpec
from tests.unit.crds.specs import http_rule, route, stream_rule


def test_absent_fields_have_their_neutral_values() -> None:
    rule = parse_spec(ApisixRouteSpec, route()).http[0]
    got = rule.model_dump(exclude={"name", "match", "backends"})
    assert got == {
        "priority": 0,
        "timeout": None,
        "websocket": False,
        "plugin_config_name": "",
        "plugin_config_namespace": "",
        "upstreams": (),
        "plugins": (),
        "authentication": None,
    }
    assert rule.backends[0].model_dump() == {
        "service_name": "web",
        "service_namespace": "",
        "service_port": 80,
        "resolve_granularity": "",
        "subset": "",
        "weight": 100,
    }


def test_explicit_weight_of_zero_is_kept() -> None:
    backend = {"serviceName": "web", "servicePort": "http", "weight": 0}
    got = parse_spec(ApisixRouteSpec, route(backends=[backend])).http[0].backends[0]
    assert (got.service_port, got.weight) == ("http", 0)


@pytest.mark.parametrize(("text", "want"), [("service", True), ("endpoint", False), ("endpoints", False), ("", False)])
def test_only_service_means_the_cluster_ip(text: str, want: bool) -> None:
    backend = {"serviceName": "web", "servicePort": 80, "resolveGranularity": text}
    assert parse_spec(ApisixRouteSpec, route(backends=[backend])).http[0].backends[0].by_service is want


def test_timeouts_are_seconds() -> None:
    got = parse_spec(ApisixRouteSpec, route(timeout={"connect": "1m30s", "read": "-1s"})).http[0].timeout
    assert got is not None
    assert (got.connect, got.send, got.read) == (90.0, None, -1.0)


def test_names_with_underscores_are_read_as_the_yaml_spells_them() -> None:
    match = {"paths": ["/"], "filter_func": "function(vars) return true end"}
    rule = parse_spec(
        ApisixRouteSpec, route(plugin_config_name="common", plugin_config_namespace="lib", match=match)
    ).http[0]
    assert (rule.plugin_config_name, rule.plugin_config_namespace) == ("common", "lib")
    assert rule.match.filter_func == "function(vars) return true end"


def test_the_set_of_an_expression_is_called_values() -> None:
    expr = {"subject": {"scope": "Query", "name": "id"}, "op": "In", "set": ["1", "2"]}
    got = parse_spec(ApisixRouteSpec, route(match={"paths": ["/"], "exprs": [expr]})).http[0].match.exprs[0]
    assert (got.op, got.value, got.values) == ("In", None, ("1", "2"))


def test_ldap_options_are_read() -> None:
    options = {"base_dn": "ou=users", "ldap_uri": "ldap:1389", "use_tls": True, "uid": "cn"}
    got = parse_spec(ApisixRouteSpec, route(authentication={"enable": True, "type": "ldapAuth", "ldapAuth": options}))
    assert got.http[0].authentication is not None
    assert got.http[0].authentication.ldap_auth is not None
    assert got.http[0].authentication.ldap_auth.model_dump() == options


def test_stream_rules_are_read() -> None:
    got = parse_spec(ApisixRouteSpec, {"stream": [stream_rule(match={"ingressPort": 9110, "host": "a.example.com"})]})
    assert (got.stream[0].match.ingress_port, got.stream[0].match.host) == (9110, "a.example.com")
    assert got.stream[0].backend.service_name == "web"


def test_models_are_frozen_and_compare_by_value() -> None:
    one, other = (
        parse_spec(ApisixRouteSpec, route()),
        parse_spec(ApisixRouteSpec, {"http": [http_rule()], "stream": []}),
    )
    assert one == other
    with pytest.raises(ValidationError, match="frozen"):
        one.http = ()  # type: ignore[misc]
