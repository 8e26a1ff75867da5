"""Snapshots compared with desired records: defaults that a gateway adds are not differences."""

from typing import Any

import httpx
import pytest

from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.live_records import Snapshot, with_gateway_defaults
from apisix_ingress.diagnostics.reports.diff import Wanted, difference
from apisix_ingress.diagnostics.reports.orphans import adoptions
from apisix_ingress.model.records import Record
from tests.unit.apisix_ingress.diagnostics.sides import our_record, snapshot, wanted
from tests.unit.apisix_ingress.gateway.adminapi.replies import make_backend

OLD, NEW = "APISIX/3.13.0", "APISIX/3.14.0"
FILLED = {"priority": 0, "status": 1}
SCHEMA = {"properties": {name: {"default": value} for name, value in FILLED.items()}}


async def compared(there: Snapshot, here: Wanted) -> tuple[Snapshot, list[str]]:
    """Return the snapshot with the desired records, and the requests to the gateway."""
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path.removeprefix("/apisix/admin/"))
        return httpx.Response(200, json=SCHEMA)

    backend = make_backend(answer)
    try:
        return await with_gateway_defaults(there, here.desired, backend), asked
    finally:
        await backend.aclose()


def kept(record: Record, version: str = OLD, **changes: Any) -> Snapshot:
    """Return a gateway that has a record with its defaults."""
    body = {**record.body, "create_time": 1, "update_time": 2, **FILLED, **changes}
    return snapshot(others={record.key: body}, version=version)


async def test_defaults_that_were_filled_in_are_not_a_difference() -> None:
    record = our_record(uri="/")
    there, asked = await compared(kept(record), wanted(record))
    got = difference(wanted(record), there)
    assert (got["changes"], got["unchanged"], asked) == ([], 1, ["schema/route"])


async def test_state_of_a_gateway_that_fills_in_defaults_is_settled() -> None:
    record = our_record(uri="/")
    seen = SeenGateway("default", "http://gateway", wanted(record).desired)
    seen.snapshot, _ = await compared(kept(record), wanted(record))
    seen.listing = seen.snapshot.listing()
    assert (seen.counts().there, seen.counts().differing, seen.record_state(record.key).is_away) == (1, 0, False)


@pytest.mark.parametrize("changes", [{"priority": 7}, {"desc": "by hand"}])
async def test_what_differs_otherwise_is_shown(changes: dict[str, Any]) -> None:
    record = our_record(uri="/")
    there, _ = await compared(kept(record, **changes), wanted(record))
    assert difference(wanted(record), there)["counts"] == {"update": 1}


async def test_a_record_with_filled_in_defaults_equals_the_desired_one() -> None:
    record = our_record(uri="/")
    there, _ = await compared(kept(record, labels={}), wanted(record))
    (got,) = adoptions([record.key], wanted(record), there)
    assert (got["act"], got["why"]) == ("adopt", "it then equals the desired record of ApisixRoute default/web")


async def test_a_gateway_is_not_queried_without_need() -> None:
    record = our_record(uri="/")
    modern, equal = kept(record, NEW), snapshot(record, version=OLD)
    assert await compared(modern, wanted(record)) == (modern, [])
    assert await compared(equal, wanted(record)) == (equal, [])
