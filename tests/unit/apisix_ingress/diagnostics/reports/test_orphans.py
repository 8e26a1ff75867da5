"""The owners of records, and which records can be adopted."""

import pytest

from apisix_ingress.diagnostics.reports.orphans import adoptions, orphans, parse_keys
from apisix_ingress.errors import ConfigError
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import owner_labels
from apisix_ingress.state.holds import Hold
from tests.unit.apisix_ingress.diagnostics.sides import our_record, snapshot, wanted

MINE = RecordKey("routes", "mine")


def test_records_are_sorted_by_owner() -> None:
    kept, gone, here = (our_record(f"default_{name}_rule") for name in ("broken", "gone", "here"))
    there = snapshot(kept, gone, here, others={MINE: {"uri": "/", "upstream_id": "nowhere", "service_id": 5}})
    got = orphans(wanted(here, holds=(Hold("routes", prefix="default_broken_"),)), there)
    assert [item["record"] for item in got["orphans"]] == [str(gone.key)]
    assert [item["owner"] for item in got["orphans"]] == ["ApisixRoute default/gone"]
    assert [item["record"] for item in got["kept"]] == [str(kept.key)]
    assert got["foreign"] == [{"record": "routes/mine", "name": "", "owner": "", "holder": ""}]
    assert [item["missing"] for item in got["dangling"]] == ["upstreams/nowhere", "services/5"]


def test_a_record_stays_while_another_one_that_stays_refers_to_it() -> None:
    used, unused, last = (our_record(f"default_{name}", kind="upstreams") for name in ("used", "unused", "last"))
    kept, gone = our_record("default_broken_rule", upstream_id=used.key.id), our_record(upstream_id=last.key.id)
    others = {MINE: {"uri": "/", "upstream_id": unused.key.id}}
    holds = (Hold("routes", prefix="default_broken_"),)
    got = orphans(wanted(holds=holds), snapshot(used, unused, last, kept, gone, others=others))
    assert {item["record"] for item in got["kept"]} == {str(each.key) for each in (used, unused, kept)}
    assert {item["record"] for item in got["orphans"]} == {str(each.key) for each in (last, gone)}


def test_reference_to_a_record_of_others_is_not_broken() -> None:
    route = our_record(upstream_id="theirs")
    got = orphans(wanted(route), snapshot(route, others={RecordKey("upstreams", "theirs"): {}}))
    assert got["dangling"] == []


def test_a_record_of_another_controller_names_its_holder() -> None:
    there = snapshot(others={MINE: {"labels": owner_labels("blue")}})
    assert [item["holder"] for item in orphans(wanted(), there)["foreign"]] == ["blue"]


def test_only_the_ledger_shows_that_a_rule_without_labels_is_managed() -> None:
    rule = RecordKey("global_rules", "old")
    there = snapshot(others={rule: {"plugins": {}}})
    unknown, known = orphans(wanted(), there), orphans(wanted(ledger={rule}), there)
    assert (len(unknown["foreign"]), len(unknown["orphans"])) == (1, 0)
    assert (len(known["foreign"]), len(known["orphans"])) == (0, 1)


def test_only_unheld_records_desired_by_an_object_are_adopted() -> None:
    free, equal, held, ours = (our_record(f"default_web_{name}", uri="/") for name in ("free", "equal", "held", "ours"))
    rule, consumer = our_record("default_rule", kind="global_rules"), our_record("default_jack", kind="consumers")
    bare = {key: value for key, value in equal.body.items() if key != "labels"}
    others = {
        free.key: {"uri": "/theirs"},
        equal.key: bare,
        held.key: {"labels": owner_labels("blue")},
        MINE: {"uri": "/mine"},
        rule.key: {"plugins": {}},
        consumer.key: {"username": "jack"},
    }
    side = wanted(free, equal, held, ours, rule, consumer)
    keys = [free.key, equal.key, held.key, ours.key, rule.key, consumer.key, MINE]
    got = adoptions(keys, side, snapshot(ours, others=others))
    assert [item["act"] for item in got] == ["adopt", "adopt", "refuse", "nothing", "nothing", "refuse", "refuse"]
    assert [item["why"].partition(":")[0] for item in got] == [
        "the controller then overwrites it with the desired record of ApisixRoute default/web",
        "it then equals the desired record of ApisixRoute default/web",
        "belongs to controller blue",
        "already managed",
        "its kind has no labels",
        "its credentials would have to be rewritten",
        "no object needs it, so the controller would delete it",
    ]


def test_record_that_is_not_there_cannot_be_adopted() -> None:
    with pytest.raises(ConfigError, match="routes/mine: cluster default has no such record"):
        adoptions([MINE], wanted(), snapshot())


def test_records_are_named_by_kind_and_id() -> None:
    assert parse_keys(["routes/mine", "upstreams/a/b", "routes/mine"]) == [MINE, RecordKey("upstreams", "a/b")]
    for name in ("routes", "routes/", "services/1", "/1"):
        with pytest.raises(ConfigError, match=f"{name}: write kind and id, such as routes/46eb0e41"):
            parse_keys([name])
