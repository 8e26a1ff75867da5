"""Defects of the records of gateways, and of what is reported about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog

from apisix_ingress.errors import GatewayRejected, IngressError
from apisix_ingress.gateway.adminapi import client
from apisix_ingress.gateway.adminapi.request_sender import RequestSender
from apisix_ingress.gateway.sync import plan
from apisix_ingress.gateway.sync.closing import Closings
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import DELETE, HOLD, NOTHING, IsHeld, Step, WantedAt
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from apisix_ingress.kube.status import writer
from apisix_ingress.model import records
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.state.ids.id_table import IdTable
from tests.simulation.checking.oracle import NAMELESS
from tests.simulation.defects.planting import defect, instead


@defect("a lost reply is treated as not written")
def _() -> Any:
    return instead(RecordTable, "write_unknown", RecordTable.write_failed)


@defect("a lost reply is treated as written")
def _() -> Any:
    return instead(RecordTable, "write_unknown", RecordTable.write_succeeded)


@defect("the rejection of a retry is applied to the first attempt too")
def _() -> Any:
    return instead(RequestSender, "_check_repeated", lambda self, response, method, path: None)


@defect("records that may be overwritten late are not checked again")
def _() -> Any:
    return instead(UnackedWrites, "come_due", lambda self, now: False)


@defect("a write is not retried")
def _() -> Any:
    return instead(RecordDriver, "retry", lambda self, slot, error: None)


@defect("a rejected route is not closed")
def _() -> Any:
    return instead(Closings, "instead_of", lambda self, step: step)


@defect("delete before its referrers")
def _() -> Any:
    def removal(key: RecordKey, table: RecordTable, *, is_held: IsHeld, wanted_at: WantedAt) -> Step:
        if table.get(key).observed is None:
            return NOTHING
        return HOLD if plan.must_stay(key, wanted_at, table, is_held) else DELETE

    return instead(plan, "_removal", removal)


@defect("write before its references")
def _() -> Any:
    return instead(plan, "_is_there", lambda ref, record, table: True)


@defect("nothing kept for untranslatable objects")
def _() -> Any:
    return instead(plan, "must_stay", lambda key, wanted_at, table, is_held: False)


@defect("the youngest name gets the short id")
def _() -> Any:
    return instead(IdTable, "age", _reversed_age)


@defect("ids move at any time")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        async def adopt(self: Any, cluster: str, held: Any) -> None:
            pass

        with (
            instead(IdTable, "settle", lambda self: None),
            instead(IdAdoption, "adopt", adopt),
            instead(IdTable, "age", _reversed_age),
        ):
            yield

    return planted()


@defect("a new name gets its wide id if records do not contain names")
def _() -> Any:
    def may_have(self: Any, slot: Any, name: str) -> bool:
        return not (self._settled and slot.kind in NAMELESS) and _may_have(self, slot, name)

    return instead(IdTable, "_may_have", may_have)


_may_have = IdTable._may_have
_age = IdTable.age


def _reversed_age(self: Any, kind: Any, name: str) -> Any:
    return tuple(-ord(char) for char in _age(self, kind, name)[0])


@defect("a waiting delete is forgotten")
def _() -> Any:
    return instead(WriteOrder, "due", lambda self: [])


@defect("every record is treated as owned")
def _() -> Any:
    return instead(client, "is_owned", lambda labels, controller: True)


@defect("no audit")
def _() -> Any:
    async def nothing(self: Any) -> bool:
        with suppress(IngressError):
            await self._backend.list_managed(frozenset())
        return True

    return instead(Audit, "run_once", nothing)


@defect("records missing from a list are treated as present")
def _() -> Any:
    return instead(RecordTable, "missing", lambda self, slot: None)


@defect("server-set fields are compared")
def _() -> Any:
    return instead(records, "SERVER_FIELDS", frozenset())


@defect("a rejected key is treated as a rejected record")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        fail = RecordWriter._fail

        def confused(self: Any, slot: Any, record: Any, error: Any) -> None:
            if error.status == 401:
                error = GatewayRejected(401, "refused")
            fail(self, slot, record, error)

        with instead(RecordWriter, "_fail", confused):
            yield

    return planted()


@defect("unchanged statuses are rewritten")
def _() -> Any:
    return instead(writer, "differing", lambda stored, wanted: {"status"})


@defect("bodies are logged")
def _() -> Any:
    succeed = RecordWriter._succeed

    def chatty(self: Any, slot: Any, record: Any, started: float) -> None:
        if record is not None:
            structlog.get_logger().info("record.sent", body=record.payload.decode())
        succeed(self, slot, record, started)

    return instead(RecordWriter, "_succeed", chatty)
