"""Records: equality, references and the comparable form."""

from typing import Any

import pytest

from apisix_ingress.model.keys import RECORD_KINDS, RecordKey, RecordKind
from apisix_ingress.model.objects import Meta, Secret
from apisix_ingress.model.records import UPSERT_RANK, Record, comparable, references
from tests.factories import make_record

SHARED = {"serverless-pre-function": {"ingress_nginx": {"basic": {"realm": "", "users": {"plugin_config_id": 2}}}}}
SPLIT = {
    "traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "a"}, {"weight": 1}, {"upstream_id": 7}]}]}
}


def test_every_kind_has_a_rank() -> None:
    assert set(UPSERT_RANK) == set(RECORD_KINDS)


@pytest.mark.parametrize(
    ("kind", "plugins", "want"),
    [
        ("global_rules", {"cors": {}, "gzip": {"level": 1}}, {("cors", ""), ("gzip", "")}),
        ("consumers", {"key-auth": {"key": "k"}, "cors": {}}, {("key-auth", "k")}),
        ("consumers", {"basic-auth": {"username": "u", "password": "p"}}, {("basic-auth", "u")}),
        ("consumers", {"jwt-auth": {"key": 7}, "hmac-auth": {"key_id": "i"}}, {("hmac-auth", "i")}),
        ("consumers", {"ldap-auth": {"user_dn": "d"}, "key-auth": "k"}, {("ldap-auth", "d")}),
        ("consumers", None, set()),
        ("routes", {"cors": {}, "key-auth": {"key": "k"}}, set()),
    ],
)
def test_exclusive_values_are_returned_for_kinds_in_which_gateways_enforce_them(
    kind: RecordKind, plugins: Any, want: set[tuple[str, str]]
) -> None:
    assert make_record(kind=kind, body={"plugins": plugins}).takes == want


def test_secrets_of_a_record_change_neither_its_payload_nor_its_repr() -> None:
    record, secret = make_record(), Secret(Meta("Secret", "default", "values"), data={"a": b"b"})
    payload = record.payload
    got = record.generated_from((secret,))
    assert (got, got.payload is payload, got.secrets, record.secrets) == (record, True, (secret,), ())
    assert repr(got) == repr(record)


def test_record_is_equal_by_what_is_sent_and_where() -> None:
    one = make_record(body={"uri": "/a", "methods": ["GET"]})
    assert one == make_record(body={"methods": ["GET"], "uri": "/a"})
    assert hash(one) == hash(make_record(body={"uri": "/b"}))
    others: list[object] = [
        make_record(body={"uri": "/b", "methods": ["GET"]}),
        make_record("another", body={"uri": "/a", "methods": ["GET"]}),
        make_record(body={"uri": "/a", "methods": ["GET"]}, clusters=frozenset({"east"})),
        make_record(body={"uri": "/a", "methods": ["GET"]}, existing_only=True),
        "default_web_rule",
    ]
    assert [other for other in others if one == other] == []


def test_payload_is_canonical_json() -> None:
    record = Record(RecordKey("routes", "1"), "one", {"b": 1, "a": {"d": [], "c": None}})
    assert record.payload == b'{"a":{"c":null,"d":[]},"b":1}'


def test_repr_shows_no_body() -> None:
    assert "hunter2" not in repr(make_record(body={"key": "hunter2"}))


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        ("routes", {"upstream_id": "1", "plugin_config_id": "2"}, {"upstreams/1", "plugin_configs/2"}),
        ("stream_routes", {"upstream_id": 1}, {"upstreams/1"}),
        ("stream_routes", {"plugins": SPLIT}, {"upstreams/a", "upstreams/7"}),
        ("routes", {"plugins": SPLIT}, {"upstreams/a", "upstreams/7"}),
        ("plugin_configs", {"plugins": SPLIT}, {"upstreams/a", "upstreams/7"}),
        ("global_rules", {"plugins": SPLIT}, {"upstreams/a", "upstreams/7"}),
        ("consumers", {"plugins": SPLIT}, {"upstreams/a", "upstreams/7"}),
        ("routes", {"plugins": SHARED}, {"plugin_configs/2"}),
        ("plugin_configs", {"plugins": SHARED}, set()),
        ("ssls", {"plugins": SPLIT}, set()),
        ("upstreams", {"nodes": []}, set()),
    ],
)
def test_references_are_the_records_that_a_body_names(kind: RecordKind, body: dict[str, Any], want: set[str]) -> None:
    assert {str(key) for key in references(kind, body)} == want
    assert {str(key) for key in make_record(kind=kind, body=body).refs} == want


@pytest.mark.parametrize(
    "plugins",
    [
        None,
        [],
        {},
        {"traffic-split": None},
        {"serverless-pre-function": None},
        {"serverless-pre-function": {"ingress_nginx": [{"users": 1}]}},
        {"serverless-pre-function": {"ingress_nginx": {"waived": True, "basic": {"realm": "", "users": {"joe": "x"}}}}},
        {"traffic-split": []},
        {"traffic-split": {"rules": {}}},
        {"traffic-split": {"rules": [1, {"weighted_upstreams": "x"}, {"weighted_upstreams": [None]}]}},
    ],
)
def test_malformed_traffic_split_names_nothing(plugins: object) -> None:
    assert list(references("routes", {"plugins": plugins})) == []


def test_fields_that_the_server_adds_are_not_compared() -> None:
    record = make_record(body={"uri": "/"})
    assert comparable("routes", {**record.body, "create_time": 1, "update_time": 2}) == record.digest


@pytest.mark.parametrize(
    ("kind", "sent", "returned"),
    [
        ("ssls", {"cert": "c", "key": "k", "keys": ["k"]}, {"cert": "c"}),
        ("upstreams", {"tls": {"client_cert": "c", "client_key": "k"}}, {"tls": {"client_cert": "c"}}),
        ("routes", {"plugins": {}}, {"plugins": []}),
        ("routes", {"plugins": {"a": {"b": {}}}}, {"plugins": {"a": {"b": []}}}),
        ("routes", {"timeout": {"connect": 60.0}}, {"timeout": {"connect": 60}}),
        ("routes", {"vars": [["a", ">", 1e20]]}, {"vars": [["a", ">", 1e20]]}),
        ("routes", {"priority": -1.5}, {"priority": -1.5}),
        ("upstreams", {"tls": "odd"}, {"tls": "odd"}),
        ("plugin_metadata", {"log_format": {}}, {"log_format": [], "id": "http-logger", "update_time": 1}),
        ("routes", {"enabled": True, "ok": None}, {"ok": None, "enabled": True}),
        ("routes", {"vars": [1.0, -0.0, 2.0**53]}, {"vars": [1, 0, 2**53]}),
        ("routes", {"vars": [[9007199254740991.0]]}, {"vars": [[9007199254740991]]}),
        ("routes", {"a": 2.0, "z": 1}, {"a": 2, "z": 1}),
        ("plugin_metadata", {}, {"id": "http-logger", "create_time": 1}),
    ],
)
def test_equal_records_have_one_comparable_form(
    kind: RecordKind, sent: dict[str, Any], returned: dict[str, Any]
) -> None:
    assert comparable(kind, sent) == comparable(kind, returned)


@pytest.mark.parametrize(
    ("kind", "sent", "returned"),
    [
        ("routes", {"key": "a"}, {"key": "b"}),
        ("ssls", {"cert": "a"}, {"cert": "b"}),
        ("upstreams", {"tls": {"client_cert": "a"}}, {"tls": {"client_cert": "b"}}),
        ("routes", {"uris": ["/a", "/b"]}, {"uris": ["/b", "/a"]}),
        ("routes", {"retries": 0}, {"retries": False}),
        ("routes", {"id": "a"}, {"id": "b"}),
        ("routes", {"priority": 1}, {"priority": "1"}),
        ("routes", {"desc": "{}"}, {"desc": "[]"}),
        ("routes", {"desc": "1.0,"}, {"desc": "1,"}),
    ],
)
def test_different_records_have_two(kind: RecordKind, sent: dict[str, Any], returned: dict[str, Any]) -> None:
    assert comparable(kind, sent) != comparable(kind, returned)


def test_a_record_nested_too_deeply_has_a_digest_that_no_gateway_answers() -> None:
    body: dict[str, Any] = {}
    for _ in range(300):
        body = {"a": body}
    assert Record(RecordKey("routes", "r1"), "r", body).digest == b"\0"


def test_two_versions_nested_too_deeply_are_not_equal() -> None:
    body: dict[str, Any] = {}
    for _ in range(300):
        body = {"a": body}
    first, second = (Record(RecordKey("routes", "r1"), "r", {"n": n, **body}) for n in (1, 2))
    assert first != second
    assert first == Record(first.key, "r", first.body)


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        ("routes", {"host": "A.com."}, ("a.com",)),
        ("routes", {"hosts": ["a.com", "*.b.com"]}, ("a.com", "*.b.com")),
        ("routes", {"uri": "/"}, ("*",)),
        ("ssls", {"snis": ["a.com"]}, ("a.com",)),
        ("ssls", {"sni": "a.com"}, ("a.com",)),
        ("stream_routes", {"sni": "a.com", "server_port": 1}, ("a.com",)),
        ("stream_routes", {"server_port": 9100}, (":9100",)),
        ("upstreams", {"id": "u"}, ()),
    ],
)
def test_hosts_that_a_record_is_for(kind: RecordKind, body: dict[str, Any], want: tuple[str, ...]) -> None:
    assert Record(RecordKey(kind, "r"), "r", body).hosts == want


def test_a_prepared_record_is_the_same() -> None:
    plugins = {"cors": {"x": [1.0, {}]}}
    body = {"id": "1", "uri": "/a", "upstream_id": "u", "plugins": plugins}
    prepared, other = make_record(body=body), make_record(body=body)
    prepared.prepare()
    assert {"payload", "refs", "takes", "digest"} <= vars(prepared).keys()
    assert (prepared, prepared.digest, prepared.refs, prepared.takes) == (other, other.digest, other.refs, other.takes)


def test_a_record_that_is_too_deep_is_prepared_as_far_as_it_can_be() -> None:
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    record = make_record(body={"plugins": {"cors": {"x": deep}}})
    record.prepare()
    assert record.digest == b"\0"
    with pytest.raises(TypeError):
        _ = record.payload
