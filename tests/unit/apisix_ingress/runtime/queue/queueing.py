"""Work queues on a clock that tests move, and an observer that keeps its calls."""

from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.queue.workqueue import QueueObserver, WorkQueue
from tests.fakes.clock import FakeClock


class Recorder(QueueObserver):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, float]] = []

    def depth(self, keys: int) -> None:
        self.reported.append(("depth", keys))

    def added(self) -> None:
        self.reported.append(("added", 1))

    def retried(self) -> None:
        self.reported.append(("retried", 1))

    def started(self, waited: float) -> None:
        self.reported.append(("started", waited))

    def finished(self, worked: float) -> None:
        self.reported.append(("finished", worked))


def make_queue(clock: FakeClock, *, urgent_burst: int = 8, observer: Recorder | None = None) -> WorkQueue[str]:
    limiter = ExponentialBackoff[str](1, 60)
    return WorkQueue(clock=clock, limiter=limiter, urgent_burst=urgent_burst, observer=observer)


def take_all(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys
