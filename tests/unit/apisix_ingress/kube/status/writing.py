"""A status writer on the test's clock, with an API server that accepts every patch immediately."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from apisix_ingress.kube.status.writer import StatusWriter
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.kube.status import Wanted


def key_of(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey("ApisixRoute", namespace, name)


@dataclass
class AcceptingApi:
    """Accepts every patch; keeps the paths, and the conditions by object."""

    paths: list[str] = field(default_factory=list)
    said: dict[ObjectKey, Condition] = field(default_factory=dict)

    @property
    def writes(self) -> int:
        return len(self.paths)

    async def get(self, path: str, *, timeout: float = 0.0) -> JsonObject:
        raise AssertionError(f"what is known is current, so {path} is not read within {timeout} s")

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        self.paths.append(path)
        parts = path.split("/")
        [condition] = body["status"]["conditions"]
        self.said[key_of(parts[-2], parts[-4])] = Condition(
            condition["status"], condition["reason"], condition["message"], condition["observedGeneration"]
        )
        return {"metadata": {"resourceVersion": f"{self.writes} {manager} {timeout}"}, "status": body["status"]}


@asynccontextmanager
async def writing(
    api: AcceptingApi, clock: FakeClock, keys: Iterable[ObjectKey], wanted: Wanted
) -> AsyncIterator[StatusWriter]:
    """Write the statuses of objects; nothing is queued yet."""
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    for key in keys:
        store.set(CustomObject(Meta("ApisixRoute", key.namespace, key.name, generation=1), {}))
    writer = StatusWriter(api, {store.kind: store}, wanted, clock=clock, rng=random.Random(1), gateways=wanted)
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    try:
        yield writer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
