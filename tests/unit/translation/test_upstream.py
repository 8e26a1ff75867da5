"""ApisixUpstream: settings, external nodes, discovery."""

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.claims import UpstreamClaim
from tests.unit.translation.objects import (
    OPTIONS,
    bodies,
    claim,
    get,
    pem,
    protected_by,
    reported,
    secret,
    service,
    upstream,
    world,
)
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome, records_of
from translation.upstream import translate_upstream

KEY = ObjectKey("ApisixUpstream", "default", "web")
DOMAIN = {"name": "a.example.com", "type": "Domain"}
EXTERNAL: JsonObject = {"externalNodes": [DOMAIN]}


def translate(raw: JsonObject, *objects: JsonObject, claimed: bool = True, weak: bool = False) -> Outcome:
    found = world(raw, *objects)
    if claimed:
        claim(found, "route", UpstreamClaim(KEY, weak=weak))
    return translate_upstream(get(found, "ApisixUpstream", "web"), found.view(), OPTIONS)


def test_an_upstream_without_claims_has_no_record() -> None:
    got = translate(upstream(**EXTERNAL), claimed=False)
    assert (records_of(got), got.problems) == ((), ())
    (hold,) = protected_by(got)
    assert hold.kind == "upstreams"


def test_upstream_that_is_claimed_weakly_is_only_updated() -> None:
    (record,) = records_of(translate(upstream(**EXTERNAL), weak=True))
    assert record.existing_only


@pytest.mark.parametrize(
    ("where", "key", "fits"),
    [
        ("vars", "remote_addr", True),
        ("vars", "arg_user", True),
        ("vars", "session", False),
        ("vars", "http_x_user", False),
        ("vars", "$remote_addr", False),
        ("cookie", "session", True),
        ("header", "X-User", True),
        ("header", "X User", False),
        ("vars_combinations", "$remote_addr$http_x", True),
    ],
)
def test_a_key_that_no_gateway_hashes_is_reported(where: str, key: str, fits: bool) -> None:
    got = translate(upstream(loadbalancer={"type": "chash", "hashOn": where, "key": key}, **EXTERNAL))
    assert reported(got) == ([] if fits else ["error InvalidSpec spec.loadbalancer.key"])


def test_an_unused_hash_key_is_ignored() -> None:
    assert reported(translate(upstream(loadbalancer={"type": "roundrobin", "key": "?"}, **EXTERNAL))) == []


def test_deleted_upstream_is_nothing() -> None:
    assert translate_upstream(None, world().view(), OPTIONS) is NOTHING


def test_discovery_replaces_nodes() -> None:
    discovery = {"serviceName": "svc", "type": "dns"}
    (body,) = bodies(translate(upstream(discovery=discovery, scheme="grpc")))
    assert body == {"type": "roundrobin", "scheme": "grpc", "service_name": "svc", "discovery_type": "dns"}
    args = {"namespace_id": "n"}
    (body,) = bodies(translate(upstream(discovery={**discovery, "args": args})))
    assert body["discovery_args"] == args


@pytest.mark.parametrize(
    ("node", "want"),
    [
        ({**DOMAIN, "weight": 0}, {"host": "a.example.com", "port": 80, "weight": 0}),
        ({**DOMAIN, "port": 8443}, {"host": "a.example.com", "port": 8443, "weight": 100}),
        ({"name": "fd00::1", "type": "Domain"}, {"host": "[fd00::1]", "port": 80, "weight": 100}),
        ({"name": "ext", "type": "Service"}, {"host": "b.example.com", "port": 80, "weight": 100}),
    ],
)
def test_external_node(node: JsonObject, want: JsonObject) -> None:
    got = translate(upstream(externalNodes=[node]), service("ext", type="ExternalName", externalName="b.example.com"))
    assert [body["nodes"] for body in bodies(got)] == [[want]]


@pytest.mark.parametrize(
    ("node", "want"),
    [
        ({"name": "ext", "type": "Service"}, "error NotExternalName spec.externalNodes[0].name"),
        ({"name": "nope", "type": "Service"}, "error ServiceNotFound spec.externalNodes[0].name"),
        ({"name": "A_b", "type": "Domain"}, "error InvalidNode spec.externalNodes[0].name"),
    ],
)
def test_bad_external_node_is_reported(node: JsonObject, want: str) -> None:
    got = translate(upstream(externalNodes=[node]), service("ext"))
    assert reported(got) == [want]
    assert records_of(got) == ()


def test_settings_of_every_port_are_checked() -> None:
    check = {"active": {"healthy": {"interval": "500ms"}}}
    got = translate(upstream(portLevelSettings=[{"port": 80, "healthCheck": check}]), service())
    assert reported(got) == ["error InvalidSpec spec.portLevelSettings[0].healthCheck.active.healthy.interval"]


def test_port_settings_do_not_apply_to_external_nodes() -> None:
    level = {"port": 80, "tlsSecret": {"name": "none", "namespace": "default"}}
    got = translate(upstream(**EXTERNAL, portLevelSettings=[level]))
    assert reported(got) == []
    assert len(records_of(got)) == 1


def test_a_mistake_in_common_settings_is_reported_once_at_its_field() -> None:
    check: JsonObject = {"active": {"healthy": {}}}
    levels = [{"port": 80, "retries": 1}, {"port": 81}]
    got = translate(upstream(healthCheck=check, portLevelSettings=levels), service())
    assert reported(got) == ["error InvalidSpec spec.healthCheck.active.healthy.interval"]


def test_missing_secret_of_a_port_is_reported_at_its_port() -> None:
    level = {"port": 81, "tlsSecret": {"name": "none", "namespace": "default"}}
    got = translate(upstream(portLevelSettings=[{"port": 80}, level]), service())
    assert reported(got) == ["error SecretNotFound spec.portLevelSettings[1].tlsSecret"]


def test_spec_that_does_not_fit_is_reported() -> None:
    assert reported(translate(upstream(retries="x"))) == ["error InvalidSpec spec.retries"]


def test_rewritten_host_must_be_there_for_every_port() -> None:
    levels = [{"port": 80, "passHost": "rewrite"}, {"port": 81, "upstreamHost": "a.example.com"}]
    got = translate(upstream(portLevelSettings=levels), service())
    assert reported(got) == ["error InvalidSpec spec.portLevelSettings[0].upstreamHost"]


def test_client_certificate_is_sent_and_the_key_is_in_no_repr() -> None:
    one = pem(1)
    raw = upstream(**EXTERNAL, tlsSecret={"name": "secret", "namespace": "default"})
    got = translate(raw, secret(tls__crt=one.certificate, tls__key=one.key))
    assert [body["tls"] for body in bodies(got)] == [{"client_cert": one.certificate, "client_key": one.key}]
    assert one.key not in repr(got)


def test_secret_of_another_namespace_needs_a_grant_if_the_settings_require_it() -> None:
    one = pem(1)
    raw = upstream(**EXTERNAL, tlsSecret={"name": "secret", "namespace": "b"})
    found = world(raw, secret(namespace="b", tls__crt=one.certificate, tls__key=one.key))
    options = Options(cross_namespace="grant")
    got = translate_upstream(get(found, "ApisixUpstream", "web"), found.view(), options)
    assert [str(problem) for problem in got.problems] == [
        "spec.tlsSecret: Secret b/secret does not exist, or references from namespace default are not permitted; "
        "create it or correct the name, or add a ReferenceGrant there"
    ]


def test_status_code_that_is_listed_twice_is_sent_once() -> None:
    check = {
        "active": {"healthy": {"interval": "1s", "httpCodes": [201, 200, 201]}},
        "passive": {"unhealthy": {"httpCodes": [500, 500]}},
    }
    (body,) = bodies(translate(upstream(**EXTERNAL, healthCheck=check)))
    assert body["checks"]["active"]["healthy"]["http_statuses"] == [201, 200]
    assert body["checks"]["passive"]["unhealthy"]["http_statuses"] == [500]


def test_time_of_a_probe_keeps_its_fraction_and_the_interval_is_whole() -> None:
    check = {"active": {"timeout": "500ms", "healthy": {"interval": "1500ms"}}}
    (body,) = bodies(translate(upstream(**EXTERNAL, healthCheck=check)))
    assert body["checks"]["active"]["timeout"] == 0.5
    assert body["checks"]["active"]["healthy"] == {"interval": 1}


def test_status_codes_of_a_health_check_are_checked_once_each() -> None:
    from crds import parse_spec

    spec = parse_spec(
        "ApisixUpstream",
        {"healthCheck": {"active": {"type": "http", "healthy": {"httpCodes": [200, 201] * 9, "interval": "1s"}}}},
    )
    healthy = spec.model_dump()["health_check"]["active"]["healthy"]
    assert healthy["http_codes"] == (200, 201)
