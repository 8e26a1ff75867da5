"""When writes that were not acknowledged make an audit due, and when they are forgotten."""

import math

from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import OTHER, UPSTREAM, UPSTREAM_RECORD

LATER = make_record(UPSTREAM, nodes={"b:80": 1})


class Writes:
    """Unacknowledged writes, by key."""

    def __init__(self) -> None:
        self.table = RecordTable()
        self.unacked = UnackedWrites(self.table)

    def note(self, key: RecordKey, record: Record | None, until: float) -> None:
        self.unacked.note(self.table.slot(key), record, until)

    def acknowledged(self, key: RecordKey, record: Record | None, started: float) -> None:
        self.unacked.acknowledged(self.table.slot(key), record, started)

    @property
    def may_be_overwritten(self) -> dict[RecordKey, float]:
        slots = self.table.timed.values()
        return {slot.key: slot.may_be_overwritten for slot in slots if slot.may_be_overwritten > -math.inf}


def test_an_audit_is_due_once_after_the_last_possible_write() -> None:
    writes = Writes()
    writes.note(UPSTREAM, UPSTREAM_RECORD, 115)
    writes.acknowledged(UPSTREAM, LATER, 105)
    writes.note(OTHER, None, 120)
    writes.acknowledged(OTHER, make_record(OTHER), 106)
    assert [writes.unacked.come_due(now) for now in (115, 119.9, 120, 121)] == [False, False, True, False]


def test_a_write_after_the_end_of_the_other_needs_no_audit() -> None:
    writes = Writes()
    writes.note(UPSTREAM, UPSTREAM_RECORD, 115)
    writes.acknowledged(UPSTREAM, None, 115)
    assert not writes.unacked.come_due(1000)
    assert writes.may_be_overwritten == {}


def test_a_write_is_counted_once_however_often_it_was_lost() -> None:
    writes = Writes()
    writes.note(UPSTREAM, UPSTREAM_RECORD, 110)
    writes.note(UPSTREAM, UPSTREAM_RECORD, 115)
    writes.acknowledged(UPSTREAM, UPSTREAM_RECORD, 112)
    assert writes.may_be_overwritten == {}
    writes.acknowledged(UPSTREAM, None, 112)
    assert writes.may_be_overwritten == {UPSTREAM: 115}


def test_an_early_audit_schedules_another_one() -> None:
    writes = Writes()
    writes.note(UPSTREAM, UPSTREAM_RECORD, 115)
    writes.note(OTHER, make_record(OTHER), 115)
    writes.unacked.audited(110, lambda key: UPSTREAM_RECORD if key == UPSTREAM else None)
    assert writes.may_be_overwritten == {OTHER: 115}
    assert writes.unacked.come_due(115)
    writes.unacked.audited(115, lambda key: None)
    assert writes.may_be_overwritten == {}


def test_expired_writes_are_forgotten_unless_another_one_is_in_flight() -> None:
    writes = Writes()
    table = writes.table
    writes.note(UPSTREAM, UPSTREAM_RECORD, 115)
    writes.note(UPSTREAM, LATER, 130)
    writes.note(OTHER, None, 115)
    for key in (UPSTREAM, OTHER):
        table.write_started(table.slot(key), None)
    assert len(list(table.tick(120))) == 2
    for key in (UPSTREAM, OTHER):
        table.write_failed(table.slot(key))
    assert [slot.key for slot in table.tick(120)] == [UPSTREAM]
    writes.acknowledged(UPSTREAM, LATER, 114)
    assert writes.may_be_overwritten == {}
