"""The writes that a sync would send, and how they are displayed."""

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.reports.diff import (
    DIFFERS,
    FOREIGN,
    HIDDEN,
    KEPT,
    NO_LEDGER,
    REJECTED_ELSEWHERE,
    SWEEP,
    difference,
    masked,
)
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.objects import Meta, Secret
from apisix_ingress.state.holds import Hold
from tests.factories import make_key
from tests.unit.apisix_ingress.diagnostics.sides import our_record, snapshot, wanted


def acts(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["act"], change["record"]) for change in document["changes"]]


def test_equal_sides_have_no_difference() -> None:
    got = difference(wanted(our_record()), snapshot(our_record()))
    assert (got["changes"], got["counts"], got["unchanged"], got["notes"]) == ([], {}, 1, [])


def test_referenced_records_are_created_first_and_deleted_last() -> None:
    upstream, route = our_record("default_web_80", kind="upstreams"), our_record(upstream_id="u", uri="/")
    route = our_record(upstream_id=upstream.key.id, uri="/")
    got = difference(wanted(route, upstream), snapshot())
    assert acts(got) == [("create", str(upstream.key)), ("create", str(route.key))]
    got = difference(wanted(), snapshot(route, upstream))
    assert acts(got) == [("delete", str(route.key)), ("delete", str(upstream.key))]


def test_update_shows_both_sides_without_what_the_gateway_adds() -> None:
    there, here = our_record(uri="/old"), our_record(uri="/new")
    got = difference(wanted(here), snapshot(there))
    (change,) = got["changes"]
    assert (change["act"], change["owner"], change["name"]) == ("update", "ApisixRoute default/web", here.name)
    assert (change["before"]["uri"], change["after"]["uri"]) == ("/old", "/new")
    assert not {"create_time", "update_time"} & change["before"].keys()


def test_record_of_others_is_not_a_difference_unless_it_is_in_the_way() -> None:
    record = our_record()
    stranger = {record.key: {"uri": "/theirs"}, RecordKey("routes", "mine"): {"uri": "/mine"}}
    got = difference(wanted(record), snapshot(others=stranger))
    assert acts(got) == [("refuse", str(record.key))]
    assert got["changes"][0]["why"] == FOREIGN


def test_record_of_an_object_that_cannot_be_translated_is_kept() -> None:
    record = our_record()
    got = difference(wanted(holds=(Hold("routes", prefix="default_web_"),)), snapshot(record))
    assert acts(got) == [("keep", str(record.key))]
    assert got["changes"][0]["why"] == KEPT


UPSTREAM = our_record("default_web_80", kind="upstreams")
PATH = {"uri": "/"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("routes", {**PATH, "upstream_id": UPSTREAM.key.id}),
        ("services", {"upstream_id": UPSTREAM.key.id}),
        (
            "consumer_groups",
            {"plugins": {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": UPSTREAM.key.id}]}]}}},
        ),
    ],
)
def test_record_that_records_of_other_clients_use_is_kept(kind: Any, body: dict[str, Any]) -> None:
    got = difference(wanted(), snapshot(UPSTREAM, others={RecordKey(kind, "mine"): body}))
    assert acts(got) == [("keep", str(UPSTREAM.key))]
    assert got["changes"][0]["why"] == f"{kind}/mine stays and refers to it"


def test_gateways_delete_a_record_although_a_stream_route_of_another_client_uses_it() -> None:
    got = difference(
        wanted(), snapshot(UPSTREAM, others={RecordKey("stream_routes", "mine"): {"upstream_id": UPSTREAM.key.id}})
    )
    assert acts(got) == [("delete", str(UPSTREAM.key))]


def test_record_that_a_kept_record_uses_is_kept_and_the_chain_too() -> None:
    config = our_record(
        "default_web_config",
        kind="plugin_configs",
        plugins={"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": UPSTREAM.key.id}]}]}},
    )
    route = our_record("default_broken_rule", plugin_config_id=config.key.id, **PATH)
    holds = (Hold("routes", prefix="default_broken_"),)
    got = difference(wanted(holds=holds), snapshot(route, config, UPSTREAM))
    assert {change["record"]: change["why"] for change in got["changes"]} == {
        str(route.key): KEPT,
        str(config.key): f"{route.key} stays and refers to it",
        str(UPSTREAM.key): f"{config.key} stays and refers to it",
    }
    assert (got["counts"], got["unchanged"]) == ({"keep": 3}, 0)


def test_record_is_deleted_if_the_last_record_that_uses_it_will_use_another() -> None:
    other = our_record("default_api_80", kind="upstreams")
    before, after = (our_record(upstream_id=each.key.id, **PATH) for each in (UPSTREAM, other))
    got = difference(wanted(after, other), snapshot(before, UPSTREAM))
    assert acts(got) == [("create", str(other.key)), ("update", str(after.key)), ("delete", str(UPSTREAM.key))]


def test_unusually_many_deletes_are_held() -> None:
    records = [our_record(f"default_web_{number}") for number in range(30)]
    got = difference(wanted(records[0]), snapshot(*records))
    assert (got["counts"], got["unchanged"]) == ({"hold": 29}, 1)
    assert {change["why"] for change in got["changes"]} == {SWEEP}


def test_global_rule_is_deleted_only_if_the_ledger_names_it() -> None:
    rule = RecordKey("global_rules", "old")
    there = snapshot(others={rule: {"plugins": {"cors": {}}}})
    unknown, known, other = (difference(wanted(ledger=ledger), there) for ledger in (None, {rule}, ()))
    assert (acts(unknown), unknown["notes"]) == ([], [NO_LEDGER])
    assert (acts(known), known["notes"]) == ([("delete", "global_rules/old")], [])
    assert (acts(other), other["notes"]) == ([], [])


def test_a_kind_that_the_gateway_does_not_support_is_reported() -> None:
    record = our_record(kind="stream_routes")
    got = difference(wanted(record), snapshot(disabled=frozenset({"stream_routes"})))
    assert acts(got) == [("create", str(record.key))]
    assert ["stream_routes" in note for note in got["notes"]] == [True]


@pytest.mark.parametrize(
    ("kind", "before", "after", "want"),
    [
        ("consumers", {"key": "old-key"}, {"key": "new-key"}, ({"key": HIDDEN}, {"key": DIFFERS})),
        ("consumers", {"key": "one-key"}, {"key": "one-key"}, ({"key": HIDDEN}, {"key": HIDDEN})),
        ("consumers", {}, {"password": "secret"}, ({}, {"password": HIDDEN})),
        ("consumers", {"password": "secret"}, {}, ({"password": HIDDEN}, {})),
        ("upstreams", {"key": "uri"}, {"key": "host"}, ({"key": "uri"}, {"key": "host"})),
        (
            "routes",
            {"plugins": {"limit-count": {"key": "remote_addr", "key_type": "var"}}},
            {"plugins": {"limit-count": {"key": "consumer_name", "key_type": "var"}}},
            (
                {"plugins": {"limit-count": {"key": "remote_addr", "key_type": "var"}}},
                {"plugins": {"limit-count": {"key": "consumer_name", "key_type": "var"}}},
            ),
        ),
        ("routes", {"x": "password=one"}, {"x": "password=two"}, ({"x": "password=[redacted]"}, {"x": DIFFERS})),
        (
            "routes",
            {"x": [{"token": "a"}]},
            {"x": [{"token": "b"}]},
            ({"x": [{"token": HIDDEN}]}, {"x": [{"token": DIFFERS}]}),
        ),
        ("routes", {"x": [{"token": "a"}]}, {"x": "y"}, ({"x": [{"token": HIDDEN}]}, {"x": "y"})),
        ("routes", {"x": {"token": "a"}}, {"x": 5}, ({"x": {"token": HIDDEN}}, {"x": 5})),
        ("ssls", {"key": "sealed", "cert": "c"}, {"key": "clear", "cert": "c"}, ({"cert": "c"}, {"cert": "c"})),
    ],
)
def test_secrets_are_hidden_but_still_compared(
    kind: RecordKind, before: dict[str, Any], after: dict[str, Any], want: tuple[Any, Any]
) -> None:
    assert masked(kind, before, after) == want


VALUES = Secret(Meta("Secret", "default", "values"), data={"odd_name": b"current-value", "deep.list": b"other"})


@pytest.mark.parametrize(
    ("before", "want"),
    [
        (None, (None, {"odd_name": HIDDEN, "body": "a", "deep": {"list": HIDDEN}})),
        (
            {"odd_name": "current-value", "body": "a", "deep": {"list": "other"}},
            (
                {"odd_name": HIDDEN, "body": "a", "deep": {"list": HIDDEN}},
                {"odd_name": HIDDEN, "body": "a", "deep": {"list": HIDDEN}},
            ),
        ),
        (
            {"odd_name": "earlier-value", "body": "a", "gone": "earlier-value", "deep": "earlier-value"},
            (
                {"odd_name": HIDDEN, "body": "a", "gone": HIDDEN, "deep": HIDDEN},
                {"odd_name": DIFFERS, "body": "a", "deep": DIFFERS},
            ),
        ),
    ],
    ids=["new", "equal", "earlier"],
)
def test_values_of_secrets_are_hidden_in_both_versions_of_a_plugin(before: Any, want: tuple[Any, Any]) -> None:
    config = {"odd_name": "current-value", "body": "a", "deep": {"list": "other"}}
    here = our_record(uri="/new", plugins={"echo": config, "cors": {"max_age": 2}}).generated_from((VALUES,))
    there = our_record(uri="/old", plugins={"cors": {"max_age": 1}, **({"echo": before} if before else {})})
    (change,) = difference(wanted(here), snapshot(there))["changes"]
    sides = change["before"]["plugins"], change["after"]["plugins"]
    assert tuple(side.pop("cors") for side in sides) == ({"max_age": 1}, {"max_age": 2})
    assert tuple(side.get("echo") for side in sides) == want


def test_list_with_a_value_of_a_secret_is_compared_item_by_item() -> None:
    here = our_record(plugins={"p": {"l": ["current-value", "b"], "m": ["x", "other"]}}).generated_from((VALUES,))
    there = our_record(plugins={"p": {"l": ["earlier-value", "b"], "m": ["earlier-value"]}})
    (change,) = difference(wanted(here), snapshot(there))["changes"]
    assert change["before"]["plugins"]["p"] == {"l": [HIDDEN, "b"], "m": HIDDEN}
    assert change["after"]["plugins"]["p"] == {"l": [DIFFERS, "b"], "m": DIFFERS}


def test_record_without_plugins_may_be_generated_from_a_secret() -> None:
    here = our_record("default_web_80", kind="upstreams", tls={"client_key": "current-value"})
    (change,) = difference(wanted(here.generated_from((VALUES,))), snapshot())["changes"]
    assert (change["act"], change["after"]["labels"]) == ("create", here.body["labels"])


def test_rejected_records_of_objects_that_are_not_in_the_manifests_are_only_counted() -> None:
    mine, other = our_record(), our_record("default_other_rule")
    sides = wanted(mine, other)
    owners = {mine.key: make_key("mine"), other.key: make_key("other")}
    rejected = {each.key: "unknown plugin" for each in (mine, other)}
    got = difference(replace(sides, owners=owners, given={make_key("mine")}), snapshot(rejected=rejected))
    assert [(each["act"], each["owner"]) for each in got["changes"]] == [("reject", str(make_key("mine")))]
    assert REJECTED_ELSEWHERE.format(1) in got["notes"]
