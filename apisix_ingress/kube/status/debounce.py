"""Keys that were woken, handed on to a queue together a moment later. What is done with them is decided elsewhere.

A change wakes the same object several times within milliseconds: when it is translated, when its records are written,
for each cluster. One look after that says what all of them would, and no look is in the way of the write.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.workqueue import WorkQueue

GATHER_SECONDS = 0.02
"""From the first wake to the look: several times what the write of a change takes."""
_YIELD_EVERY = 50


class Debouncer:
    """Woken keys on their way to a queue, each once.

    Args:
        queue: Gets them.
        clock: For the moment.
    """

    def __init__(self, queue: WorkQueue[ObjectKey], *, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._keys: OrderedDict[ObjectKey, bool] = OrderedDict()
        self._woken = asyncio.Event()

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        """Have a key handed on; before `run`, and between two runs, it waits."""
        self._keys[key] = urgent or self._keys.get(key, False)
        self._woken.set()

    async def run(self) -> None:
        """Hand keys on until cancelled."""
        while True:
            await self._woken.wait()
            await self._clock.sleep(GATHER_SECONDS)
            await self.hand_on()

    async def hand_on(self) -> None:
        """Hand on at once what was woken; thousands of keys with turns for others between."""
        number = 0
        while self._keys:
            key, urgent = self._keys.popitem(last=False)
            self._queue.add(key, urgent=urgent)
            number += 1
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        self._woken.clear()
