"""When writes that nobody answered make a look at the cluster due, and when they are forgotten."""

from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.stage import OTHER, UPSTREAM, UPSTREAM_RECORD

LATER = make_record(UPSTREAM, nodes={"b:80": 1})


def test_a_look_is_due_once_when_the_last_doubt_is_over() -> None:
    doubts = UnackedWrites()
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 115)
    doubts.landed(UPSTREAM, LATER, 105)
    doubts.note(OTHER, None, 120)
    doubts.landed(OTHER, make_record(OTHER), 106)
    assert [doubts.come_due(now) for now in (115, 119.9, 120, 121)] == [False, False, True, False]


def test_a_write_that_began_after_the_doubt_needs_no_look() -> None:
    doubts = UnackedWrites()
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 115)
    doubts.landed(UPSTREAM, None, 115)
    assert not doubts.come_due(1000)
    assert doubts.overtaken == {}


def test_one_write_counts_once_however_often_it_was_lost() -> None:
    doubts = UnackedWrites()
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 110)
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 115)
    doubts.landed(UPSTREAM, UPSTREAM_RECORD, 112)
    assert doubts.overtaken == {}
    doubts.landed(UPSTREAM, None, 112)
    assert doubts.overtaken == {UPSTREAM: 115}


def test_a_look_that_comes_too_early_asks_for_another_one() -> None:
    doubts = UnackedWrites()
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 115)
    doubts.note(OTHER, make_record(OTHER), 115)
    doubts.settle(110, lambda key: UPSTREAM_RECORD if key == UPSTREAM else None)
    assert doubts.overtaken == {OTHER: 115}
    assert doubts.come_due(115)
    doubts.settle(115, lambda key: None)
    assert doubts.overtaken == {}


def test_doubts_that_are_over_are_forgotten_unless_a_write_is_under_way() -> None:
    doubts = UnackedWrites()
    doubts.note(UPSTREAM, UPSTREAM_RECORD, 115)
    doubts.note(UPSTREAM, LATER, 130)
    doubts.note(OTHER, None, 115)
    doubts.prune(120, {UPSTREAM, OTHER})
    assert (UPSTREAM in doubts, OTHER in doubts) == (True, True)
    doubts.prune(120, set())
    assert (UPSTREAM in doubts, OTHER in doubts) == (True, False)
    doubts.landed(UPSTREAM, LATER, 114)
    assert doubts.overtaken == {}
