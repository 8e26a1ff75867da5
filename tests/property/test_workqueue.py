"""The work queue against a model: P1 to P6 of `apisix_ingress.runtime.queue.workqueue` under any sequence of calls.

The machine drives the queue through `take`; what `get` adds to it (waiting, waking, the timer) is driven by
real tasks in the second half.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import run_workers
from tests.fakes.clock import FakeClock

GROUPS = 4
KEYS = st.integers(min_value=0, max_value=7)
DELAYS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 5.0])
BASE, CAP = 1.0, 8.0


@dataclass
class Waiting:
    """A normal key in its lane, with its bound by P6: how many normal keys may precede it."""

    key: int
    ahead: int
    urgent_before: int = 0
    normal_before: int = 0


def group_of(key: int) -> int:
    """Four groups of two keys each."""
    return key % GROUPS


class Turns:
    """The groups of a lane that hold a key, in the order of their turns."""

    def __init__(self) -> None:
        self.keys: dict[int, list[int]] = {}

    def __contains__(self, key: object) -> bool:
        return any(key in keys for keys in self.keys.values())

    def __iter__(self) -> Iterator[int]:
        return (key for keys in self.keys.values() for key in keys)

    def add(self, key: int) -> None:
        self.keys.setdefault(group_of(key), []).append(key)

    def remove(self, key: int) -> None:
        keys = self.keys[group_of(key)]
        keys.remove(key)
        if not keys:
            del self.keys[group_of(key)]

    def take(self) -> int:
        """Take the next key."""
        group, keys = next(iter(self.keys.items()))
        del self.keys[group]
        key, *rest = keys
        if rest:
            self.keys[group] = rest
        return key


class QueueMachine(RuleBasedStateMachine):
    """The model keeps plain lists and sets; for the choice of a lane it only knows the bounds of P6."""

    @initialize(burst=st.integers(min_value=1, max_value=3))
    def start(self, burst: int) -> None:
        self.clock = FakeClock(start=0)
        self.burst = burst
        limiter = ExponentialBackoff[int](BASE, CAP)
        self.queue = WorkQueue[int](clock=self.clock, limiter=limiter, urgent_burst=burst, group=group_of)
        self.normal, self.urgent = Turns(), Turns()
        self.waiting: dict[int, Waiting] = {}
        self.streak = 0
        self.processing: set[int] = set()
        self.again: dict[int, bool] = {}
        self.delayed: dict[int, tuple[float, int, bool]] = {}
        self.failures: dict[int, int] = {}
        self.sequence = 0
        self.shut_down = False

    # The model.

    def model_add(self, key: int, urgent: bool) -> None:
        if self.shut_down:
            return
        delayed = self.delayed.pop(key, None)
        urgent = urgent or (delayed is not None and delayed[2])
        if key in self.processing:
            self.again[key] = urgent or self.again.get(key, False)
        elif key in self.urgent:
            return
        elif urgent:
            if key in self.normal:
                self.normal.remove(key)
                del self.waiting[key]
            self.urgent.add(key)
        elif key not in self.normal:
            self.model_push(key)

    def model_push(self, key: int) -> None:
        before = len(self.normal.keys.get(group_of(key), []))
        self.waiting[key] = Waiting(key, ahead=(before + 1) * GROUPS)
        self.normal.add(key)

    def model_add_after(self, key: int, seconds: float, urgent: bool) -> None:
        if seconds <= 0:
            self.model_add(key, urgent)
            return
        dirty = key in self.urgent or key in self.again or key in self.normal
        if self.shut_down or dirty:
            return
        due = self.clock.monotonic() + seconds
        known = self.delayed.get(key)
        self.sequence += 1
        if known is None:
            self.delayed[key] = (due, self.sequence, urgent)
        elif known[0] <= due:
            self.delayed[key] = (known[0], known[1], known[2] or urgent)
        else:
            self.delayed[key] = (due, self.sequence, known[2] or urgent)

    def model_take(self, key: int) -> None:
        """P1, P3, P6: `key` was returned; it must have been the first of a lane, and the lane a fair choice."""
        assert key not in self.processing, "P1: two workers have one key"
        if key in self.urgent:
            assert self.urgent.take() == key, "P6: the urgent lane does not take turns"
            for waiting in self.waiting.values():
                waiting.urgent_before += 1
                assert waiting.urgent_before <= self.burst * (waiting.ahead + 1), "P6: a normal key starves"
            self.streak = self.streak + 1 if self.normal.keys else 0
            assert self.streak <= self.burst, "P6: too many urgent keys in a row"
        else:
            assert self.normal.take() == key, "P6: the normal lane does not take turns"
            assert not self.urgent.keys or self.streak == self.burst, "P6: the urgent lane does not go first"
            del self.waiting[key]
            for waiting in self.waiting.values():
                waiting.normal_before += 1
                assert waiting.normal_before <= waiting.ahead, "P6: a group delays another one"
            self.streak = 0
        self.processing.add(key)

    # Rules.

    @rule(key=KEYS, urgent=st.booleans())
    def add(self, key: int, urgent: bool) -> None:
        self.queue.add(key, urgent=urgent)
        self.model_add(key, urgent)

    @rule(key=KEYS, seconds=DELAYS, urgent=st.booleans())
    def add_after(self, key: int, seconds: float, urgent: bool) -> None:
        self.queue.add_after(key, seconds, urgent=urgent)
        self.model_add_after(key, seconds, urgent)

    @rule(key=KEYS)
    def retry(self, key: int) -> None:
        """P4: each failure of a key doubles its own delay, up to the cap."""
        want = min(CAP, BASE * 2 ** self.failures.get(key, 0))
        self.failures[key] = self.failures.get(key, 0) + 1
        assert self.queue.retry(key) == want, "P4: wrong delay"
        self.model_add_after(key, want, urgent=False)

    @rule(key=KEYS)
    def forget(self, key: int) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.shift(seconds)
        now = self.clock.monotonic()
        due = sorted((entry, key) for key, entry in self.delayed.items() if entry[0] <= now)
        for (_, _, urgent), key in due:
            self.model_add(key, urgent)

    @rule()
    def take(self) -> None:
        key = self.queue.take()
        if key is None:
            assert not self.normal.keys, "a normal key is lost"
            assert not self.urgent.keys, "an urgent key is lost"
        else:
            self.model_take(key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """P2: a key added meanwhile is ready again."""
        key = data.draw(st.sampled_from(sorted(self.processing)))
        self.queue.done(key)
        self.processing.remove(key)
        if key in self.again:
            self.put_back(key, self.again.pop(key))

    def put_back(self, key: int, urgent: bool) -> None:
        """A key that was dirty already is ready again, even after the shutdown."""
        if urgent:
            self.urgent.add(key)
        else:
            self.model_push(key)

    @precondition(lambda self: not self.shut_down)
    @rule(likely=st.integers(min_value=0, max_value=5))
    def end(self, likely: int) -> None:
        """P5: delayed keys are dropped, dirty ones are not. Rare, or little else would be tried."""
        if likely:
            return
        self.queue.shut_down()
        self.shut_down = True
        self.delayed.clear()

    # Invariants.

    @invariant()
    def agrees_with_the_model(self) -> None:
        ready = [*self.normal, *self.urgent]
        want = (len(ready), len(ready) + len(self.again), len(self.delayed))
        got = (len(self.queue), self.queue.depth, self.queue.delayed)
        assert got == want
        assert self.queue.is_idle == (not ready and not self.processing)

    def teardown(self) -> None:
        """P2, P5: each remaining key is returned once, and then nothing more."""
        if not hasattr(self, "queue"):
            return
        want = sorted([*self.normal, *self.urgent, *self.again, *self.delayed])
        for key in self.processing:
            self.queue.done(key)
        self.clock.shift(1000)
        got = []
        while (taken := self.queue.take()) is not None:
            got.append(taken)
            self.queue.done(taken)
        # A key that is, for example, both processed and delayed is still expected once.
        assert sorted(got) == sorted(set(want))
        assert self.queue.is_idle


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)


# Each step: after this many seconds, add these keys, some urgent, some delayed.
STEPS = st.lists(st.tuples(DELAYS, KEYS, st.booleans(), DELAYS), max_size=25)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, workers=st.integers(min_value=1, max_value=3), fail_every=st.integers(min_value=2, max_value=9))
def test_workers_see_every_add_and_never_share_a_key(
    steps: list[tuple[float, int, bool, float]], workers: int, fail_every: int
) -> None:
    """P1, P2, P4 with tasks: after the last add of a key, it is processed again, whatever fails in between."""

    async def scenario() -> None:
        clock = FakeClock(start=0)
        queue = WorkQueue[int](clock=clock, limiter=ExponentialBackoff[int](BASE, CAP))
        added: dict[int, int] = {}
        seen: dict[int, int] = {}
        busy: set[int] = set()
        runs = 0

        async def handler(key: int) -> None:
            nonlocal runs
            assert key not in busy, "P1: two workers have one key"
            busy.add(key)
            runs += 1
            version, failing = added[key], runs % fail_every == 0
            await clock.sleep(0.3)
            busy.remove(key)
            if failing:
                raise OSError("refused")
            seen[key] = version

        def on_error(_key: int, error: Exception) -> None:
            if not isinstance(error, OSError):
                raise error

        task = asyncio.create_task(run_workers(queue, handler, workers=workers, name="test", on_error=on_error))
        for version, (wait, key, urgent, delay) in enumerate(steps):
            await clock.advance(max(0.0, wait))
            added[key] = version
            queue.add_after(key, delay, urgent=urgent)
        while queue.delayed or not queue.is_idle:
            assert await clock.run_to_next(), "a key is lost: work is left and no worker will wake up"
        assert seen == added
        queue.shut_down()
        await task

    asyncio.run(scenario())
