"""The comparison of a cluster with the desired records, while other tasks run in between."""

import asyncio

from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.plan import unusual
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import FakeBackend, FakeGateway, FakeWanted, make_record


def add(wanted: FakeWanted, driver: RecordDriver, first: int, last: int) -> list[RecordKey]:
    """Desire some more routes, as after a burst of objects."""
    records: list[Record] = [make_record(RecordKey("routes", f"{number:08x}")) for number in range(first, last)]
    wanted.records.update((record.key, record) for record in records)
    keys = [record.key for record in records]
    driver.mark(keys)
    return keys


async def test_records_added_during_an_audit_do_not_become_orphans() -> None:
    wanted = FakeWanted()
    driver = RecordDriver(SyncConfig("c", wanted, clock=FakeClock()), set())
    add(wanted, driver, 0, 200)
    audit = Audit(driver, FakeBackend(FakeGateway()), on_listed=lambda began: None)
    comparing = asyncio.create_task(audit._queue_difference())
    await asyncio.sleep(0)
    late = add(wanted, driver, 1000, 1100)
    assert not comparing.done()
    await comparing
    assert unusual(late, driver.ever_wanted, 200) == frozenset()
