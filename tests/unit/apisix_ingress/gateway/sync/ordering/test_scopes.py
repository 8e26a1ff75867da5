"""Which writes the delete of a record waits for."""

from typing import Any

import pytest

from apisix_ingress.gateway.sync.ordering.scopes import EVERYTHING, awaited, scopes_of
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import UNKNOWN, Former, Record
from tests.fakes.gateway import make_record

OLD, NEW = RecordKey("routes", "old"), RecordKey("routes", "new")


def former(record: Record, namespace: str = "here") -> Former:
    return Former(namespace, {record.key: record})


def waits(old: Record, new: Record, *, written_by: str = "elsewhere") -> bool:
    """Return whether the delete of a record in namespace `here` waits for the write of another one."""
    return not set(awaited(old.key, former(old))).isdisjoint(scopes_of(new, written_by))


def make_route(key: RecordKey, *hosts: str, **body: Any) -> Record:
    return make_record(key, **{**body, **({"hosts": list(hosts)} if hosts else {})})


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ("shop.test", "shop.test", True),
        ("Shop.test", "shop.TEST", True),
        ("shop.test", "other.test", False),
        ("shop.test", "*.test", True),
        ("a.shop.test", "*.test", True),
        ("a.shop.test", "*.shop.test", True),
        ("shop.test", "*.shop.test", False),
        ("shop.test", "*shop.test", True),
        ("shop.test", "*", True),
        ("shop.test", "", True),
        ("*.shop.test", "other.test", True),
        ("", "other.test", True),
    ],
)
def test_a_route_waits_for_routes_of_other_namespaces_with_its_host(old: str, new: str, want: bool) -> None:
    assert waits(make_route(OLD, *filter(None, [old])), make_route(NEW, *filter(None, [new]))) is want


def test_the_host_of_an_ingress_is_treated_like_the_hosts_of_a_route() -> None:
    assert waits(make_record(OLD, host="shop.test"), make_route(NEW, "shop.test", "other.test"))
    assert not waits(make_record(OLD, host="shop.test"), make_record(NEW, host="other.test"))


def test_certificate_waits_for_certificates_of_its_names_only() -> None:
    old = make_record(RecordKey("ssls", "old"), snis=["shop.test"])
    assert waits(old, make_record(RecordKey("ssls", "new"), snis=["other.test", "*.test"]))
    assert not waits(old, make_record(RecordKey("ssls", "new"), snis=["other.test"]))
    assert not waits(old, make_route(NEW, "shop.test"))


def test_stream_route_waits_for_stream_routes() -> None:
    old = make_record(RecordKey("stream_routes", "old"), server_port=1)
    assert waits(old, make_record(RecordKey("stream_routes", "new"), server_port=2))
    assert not waits(old, make_route(NEW))


@pytest.mark.parametrize("kind", ["routes", "stream_routes", "ssls", "upstreams", "plugin_configs"])
def test_writes_of_the_same_namespace_precede_a_delete(kind: RecordKind) -> None:
    old = make_record(RecordKey(kind, "old"), hosts=["shop.test"], snis=["shop.test"])
    assert waits(old, make_route(NEW, "other.test"), written_by="here")


@pytest.mark.parametrize("kind", ["upstreams", "plugin_configs"])
def test_what_others_refer_to_waits_for_no_other_namespace(kind: RecordKind) -> None:
    assert not waits(make_record(RecordKey(kind, "old")), make_route(NEW))


def test_a_consumer_waits_for_no_other_write() -> None:
    consumer = make_record(RecordKey("consumers", "old"))
    assert awaited(consumer.key, former(consumer)) == awaited(consumer.key, UNKNOWN) == ()


@pytest.mark.parametrize("kind", ["global_rules", "plugin_metadata"])
def test_what_holds_for_all_requests_waits_for_all_writes(kind: RecordKind) -> None:
    assert waits(make_record(RecordKey(kind, "old")), make_route(NEW, "other.test"))


@pytest.mark.parametrize(
    "hosts",
    [[f"{number}.test" for number in range(20)], [f"{'a.' * 20}test"], ["*.shop.test"], []],
    ids=["many", "deep", "wildcard", "none"],
)
def test_route_of_many_or_deep_or_no_hosts_waits_for_all_writes(hosts: list[str]) -> None:
    assert awaited(OLD, former(make_route(OLD, *hosts))) == (EVERYTHING,)


def test_a_route_without_known_references_waits_for_all_writes() -> None:
    assert awaited(OLD, UNKNOWN) == (EVERYTHING,)
