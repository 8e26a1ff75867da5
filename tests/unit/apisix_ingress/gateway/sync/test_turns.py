"""The workers of a cluster let other tasks run."""

import asyncio
from collections import Counter

import pytest

from apisix_ingress.gateway.sync.comparison.pre_write_check import FRESH, PreWriteChecks
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.model.keys import RecordKey
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import Stage, on_stage


@on_stage
async def test_other_tasks_run_while_thousands_of_records_wait_for_one_list() -> None:
    stage, turn, turns = Stage([]), 0, Counter[int]()  # turn → number of records
    is_due = PreWriteChecks.is_due

    def counted(checks: PreWriteChecks, slot: RecordSlot) -> bool:
        turns[turn] += 1
        return is_due(checks, slot)

    async def count_turns() -> None:
        nonlocal turn
        while turn < 1000:
            turn += 1
            await asyncio.sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreWriteChecks, "is_due", counted)
        async with stage.running():
            await asyncio.sleep(2 * FRESH)
            counting = asyncio.create_task(count_turns())
            stage.want(*(make_record(RecordKey("upstreams", f"n{n}")) for n in range(3000)))
            await asyncio.sleep(1)
            await counting
    assert turns.total() >= 3000
    assert turns.most_common(1)[0][1] < 1000
