"""Plausible defects, and whether stories find them: the test of the simulation itself.

`python -m tests.simulation.defects` plants each of them in turn and plays seeds until a story fails. Every defect is a
small change of one function of the product; the simulation is unchanged.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import structlog

from apisix_ingress.app import Controller
from apisix_ingress.errors import GatewayRejected, IngressError, KubeGone, KubeUnavailable
from apisix_ingress.gateway.adminapi.request_sender import RequestSender
from apisix_ingress.gateway.sync import plan
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.plan import DELETE, HOLD, NOTHING, Step
from apisix_ingress.gateway.sync.record_writer import RecordWriter
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.gateway.sync.records.unacked_writes import UnackedWrites
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.election.lease import Lease
from apisix_ingress.kube.election.renewal import Renewal
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.informer.relist import Relist
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.dependents import Dependents
from apisix_ingress.state.ids.id_table import IdTable
from apisix_ingress.state.store import Store
from tests.simulation.checking.oracle import NAMELESS
from tests.simulation.runner import play

SEEDS = 200

Plant = Callable[[], AbstractContextManager[Any]]
DEFECTS: dict[str, Plant] = {}


def _defect(name: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        DEFECTS[name] = plant
        return plant

    return register


# Leadership.


@_defect("a write does not look at the lease")
def _() -> Any:
    return patch.object(Term, "check", lambda self, seconds=0.0: None)


@_defect("a write may take longer than the lease lasts")
def _() -> Any:
    check = Term.check
    return patch.object(Term, "check", lambda self, seconds=0.0: check(self))


@_defect("a request that was frozen is sent after its time")
def _() -> Any:
    return patch("apisix_ingress.gateway.adminapi.transport._check", lambda deadline: None)


@_defect("a lease counts as free by the wall clock")
def _() -> Any:
    def is_free(self: Any) -> bool:
        spec = self._observed.spec if self._observed else {}
        ends = spec.get("renewTime", "")
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        return not spec.get("holderIdentity") or bool(ends[:16] < now[:16])

    return patch.object(Lease, "is_free", is_free)


@_defect("a renewal that failed counts as one")
def _() -> Any:
    renew = Lease.renew

    async def careless(self: Any, seconds: float) -> None:
        with suppress(KubeUnavailable):
            await renew(self, seconds)

    return patch.object(Lease, "renew", careless)


@_defect("a renewal counts from its answer")
def _() -> Any:
    settle = Renewal._settle
    return patch.object(Renewal, "_settle", lambda self, done, sent: settle(self, done, self._clock.monotonic()))


@_defect("a renewal does not ask whose the lease is")
def _() -> Any:
    edit = KubeApi.edit

    async def rude(self: Any, path: str, operations: Any, **named: Any) -> Any:
        own = {"op": "add", "path": operations[0]["path"], "value": operations[0]["value"]}
        return await edit(self, path, [own, *operations[1:]], **named)

    return patch.object(KubeApi, "edit", rude)


@_defect("a stop gives the lease back at once")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        async def hasty(self: Any, seconds: float) -> bool:
            return True

        with patch.object(ClusterSync, "close", hasty), patch.object(Term, "doubt", lambda self, until: None):
            yield

    return planted()


@_defect("a write that was given up counts as over")
def _() -> Any:
    return patch.object(Term, "doubt", lambda self, until: None)


# The world.


@_defect("writing begins before the world is known")
def _() -> Any:
    async def prepare(self: Any) -> None:
        self.state.ready.set()

    return patch.object(Controller, "_prepare", prepare)


@_defect("a 410 is waited out, and nothing is listed again")
def _() -> Any:
    watch = Reflector._watch

    async def stubborn(self: Any, version: str) -> float:
        try:
            return await watch(self, version)
        except KubeGone:
            raise KubeUnavailable("gone") from None

    return patch.object(Reflector, "_watch", stubborn)


@_defect("a new list deletes nothing")
def _() -> Any:
    return patch.object(Relist, "_confirmed", lambda self, gone, *, is_empty: frozenset())


@_defect("a list of several pages ends with the first")
def _() -> Any:
    page = KubeApi.page

    async def first(self: Any, *args: Any, **named: Any) -> Any:
        found = await page(self, *args, **named)
        return type(found)(found.items, found.version, "")

    return patch.object(KubeApi, "page", first)


@_defect("a silent watch is believed for ever")
def _() -> Any:
    watch = KubeApi.watch

    def patient(self: Any, path: str, **named: Any) -> Any:
        return watch(self, path, **{**named, "margin": 1e6})

    return patch.object(KubeApi, "watch", patient)


# State.


@_defect("a queue loses one add in fifty")
def _() -> Any:
    add = WorkQueue.add

    def forgetful(self: Any, key: Any, *, urgent: bool = False) -> None:
        if random.random() > 0.02:
            add(self, key, urgent=urgent)

    return patch.object(WorkQueue, "add", forgetful)


@_defect("a key that is added while it is worked on is forgotten")
def _() -> Any:
    add = WorkQueue.add

    def forgetful(self: Any, key: Any, *, urgent: bool = False) -> None:
        if key not in self._processing:
            add(self, key, urgent=urgent)

    return patch.object(WorkQueue, "add", forgetful)


@_defect("a Secret or Namespace queues no object")
def _() -> Any:
    record = Dependents.record

    def without_some(self: Any, owner: Any, reads: Any) -> None:
        record(self, owner, [read for read in reads if getattr(read, "kind", "") not in ("Secret", "Namespace")])

    return patch.object(Dependents, "record", without_some)


@_defect("a store does not report a delete")
def _() -> Any:
    delete = Store.delete

    def silent(self: Any, key: Any) -> bool:
        listener, self._listener = self._listener, lambda read: None
        try:
            return delete(self, key)
        finally:
            self._listener = listener

    return patch.object(Store, "delete", silent)


# The gateway.


@_defect("a lost reply counts as not written")
def _() -> Any:
    return patch.object(RecordTable, "write_unknown", RecordTable.write_failed)


@_defect("a lost reply counts as written")
def _() -> Any:
    return patch.object(RecordTable, "write_unknown", RecordTable.write_succeeded)


@_defect("the rejection of a retry is applied to the first attempt too")
def _() -> Any:
    return patch.object(RequestSender, "_check_repeated", lambda self, reply, method, path: None)


@_defect("records that may be overwritten late are not checked again")
def _() -> Any:
    return patch.object(UnackedWrites, "come_due", lambda self, now: False)


@_defect("a write that failed is not tried again")
def _() -> Any:
    return patch.object(RecordDriver, "retry", lambda self, key, error: None)


@_defect("a delete does not wait for the records that name it")
def _() -> Any:
    def removal(key: Any, table: Any, is_held: Any) -> Step:
        known = table.get(key).observed
        if known is None:
            return NOTHING
        return HOLD if is_held(key, known.name, known.hosts) else DELETE

    return patch.object(plan, "_removal", removal)


@_defect("a write does not wait for what it names")
def _() -> Any:
    return patch.object(plan, "_is_there", lambda ref, record, table: True)


@_defect("nothing is held for an object that cannot be translated")
def _() -> Any:
    return patch.object(RecordDriver, "is_held", lambda self, key, name, hosts: False)


@_defect("the youngest name has the short id")
def _() -> Any:
    return patch.object(IdTable, "age", _reversed_age)


@_defect("ids change hands at any time")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        async def adopt(self: Any, cluster: str, held: Any) -> None:
            pass

        with (
            patch.object(IdTable, "settle", lambda self: None),
            patch.object(IdAdoption, "adopt", adopt),
            patch.object(IdTable, "age", _reversed_age),
        ):
            yield

    return planted()


@_defect("a new name gets its wide id if records do not contain names")
def _() -> Any:
    def may_have(self: Any, slot: Any, name: str) -> bool:
        return not (self._settled and slot.kind in NAMELESS) and _may_have(self, slot, name)

    return patch.object(IdTable, "_may_have", may_have)


_may_have = IdTable._may_have
_age = IdTable.age


def _reversed_age(self: Any, kind: Any, name: str) -> Any:
    return tuple(-ord(char) for char in _age(self, kind, name)[0])


@_defect("a delete that waits for writes is forgotten")
def _() -> Any:
    return patch.object(WriteOrder, "due", lambda self: [])


@_defect("every record counts as ours")
def _() -> Any:
    return patch("apisix_ingress.gateway.adminapi.client.is_owned", lambda labels, controller: True)


@_defect("no audit")
def _() -> Any:
    async def nothing(self: Any) -> bool:
        with suppress(IngressError):
            await self._backend.list_managed(frozenset())
        return True

    return patch.object(Audit, "run_once", nothing)


@_defect("what a list does not show counts as there")
def _() -> Any:
    return patch.object(RecordTable, "missing", lambda self, slot: None)


@_defect("what the gateway adds to a record counts as a difference")
def _() -> Any:
    return patch("apisix_ingress.model.records.SERVER_FIELDS", frozenset())


@_defect("a refused key counts as a rejected record")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        fail = RecordWriter._fail

        def confused(self: Any, key: Any, record: Any, error: Any) -> None:
            if error.status == 401:
                error = GatewayRejected(401, "refused")
            fail(self, key, record, error)

        with patch.object(RecordWriter, "_fail", confused):
            yield

    return planted()


# What is told.


@_defect("a status is written although it says the same")
def _() -> Any:
    return patch("apisix_ingress.kube.status.writer.differing", lambda stored, wanted: {"status"})


@_defect("a body is logged")
def _() -> Any:
    succeed = RecordWriter._succeed

    def chatty(self: Any, key: Any, record: Any, started: float) -> None:
        if record is not None:
            structlog.get_logger().info("record.sent", body=record.payload.decode())
        succeed(self, key, record, started)

    return patch.object(RecordWriter, "_succeed", chatty)


def catch(name: str, seeds: int) -> tuple[str, int | None, str]:
    """Plant a defect and play; return its name, the first failing seed, if any, and the failure."""
    with DEFECTS[name]():
        for seed in range(seeds):
            outcome = play(seed)
            if outcome.problem:
                told = outcome.problem.splitlines()
                # The first rule that was broken says more than that one was.
                return name, seed, told[1] if len(told) > 1 else told[0]
    return name, None, ""


def main() -> int:
    """Plant all defects, or those whose names contain one of some words; return 1 if any is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.defects", description=__doc__)
    parser.add_argument("words", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="play so many for each at most")
    options = parser.parse_args()
    names, escaped = [name for name in DEFECTS if any(word in name for word in options.words)], 0
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(catch, name, options.seeds) for name in names]):
            name, seed, problem = done.result()
            escaped += seed is None
            found = f"seed {seed}" if seed is not None else f"not within {options.seeds} seeds"
            print(f"{name:<58} {found:<12} {problem[:110].strip()}", flush=True)
    return bool(escaped)


if __name__ == "__main__":
    sys.exit(main())
