"""Collects keys and queues them together after a short delay, each once.

A change affects the same object several times within milliseconds: when it is translated, when its records are written,
and for each cluster. One check afterwards covers them all, and does not delay the write of the change.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from apisix_ingress.kube.status.schedule import DEBOUNCE_SECONDS
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import WorkQueue

_YIELD_EVERY = 50


class Debouncer:
    """Delays keys on their way to a queue.

    Args:
        queue: Receives the keys.
        clock: Measures the delay.
    """

    def __init__(self, queue: WorkQueue[ObjectKey], *, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._keys: OrderedDict[ObjectKey, bool] = OrderedDict()
        self._woken = asyncio.Event()

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Queue a key after the delay; before `run`, and between two runs, it is kept."""
        self._keys[key] = urgent or self._keys.get(key, False)
        self._woken.set()

    async def run(self) -> None:
        """Queue keys until cancelled."""
        while True:
            await self._woken.wait()
            await self._clock.sleep(DEBOUNCE_SECONDS)
            await self.hand_on()

    async def hand_on(self) -> None:
        """Queue all collected keys now, yielding to the event loop in between."""
        number = 0
        while self._keys:
            key, urgent = self._keys.popitem(last=False)
            self._queue.add(key, urgent=urgent)
            number += 1
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        self._woken.clear()
