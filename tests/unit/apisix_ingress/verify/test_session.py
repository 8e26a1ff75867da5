"""What is reported: differences that no repetition explains."""

from __future__ import annotations

from itertools import count

from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.verify.model import Address, Answer, Probe
from apisix_ingress.verify.session import CONFIRMATIONS, REPEATS, Finding, Options, Session

ADDRESS = Address("127.0.0.1", {"http": 80, "https": 443})


class Pods:
    """A gateway whose Pods respond in a specified order; the last one responds to all further requests."""

    address = ADDRESS

    def __init__(self, *order: str) -> None:
        self._order = order
        self._number = count()

    async def send(self, _probe: Probe) -> Answer:
        return Answer(200, (("x-pod", self._order[min(next(self._number), len(self._order) - 1)]),), b"page")


async def compared(old: Pods, new: Pods, probes: int = 1) -> list[Finding]:
    session = Session(old, new, Options(rate=1e9), clock=MonotonicClock())
    return await session.run([Probe("a.test", f"/{number}") for number in range(probes)], lambda _: None)


async def test_pods_that_happen_to_respond_in_step_do_not_differ() -> None:
    unlucky = REPEATS + 1

    (got,) = await compared(Pods(*["a"] * unlucky, "b"), Pods(*["b"] * unlucky, "a"))

    assert got.differences == ()


async def test_a_lasting_difference_is_confirmed_once_for_all_requests() -> None:
    first, *others = await compared(Pods("a"), Pods("b"), probes=4)

    assert [each.name for each in first.differences] == ["x-pod"]
    assert max(first.requests, *(each.requests for each in others)) == 1 + REPEATS + CONFIRMATIONS
    assert [each.requests for each in (first, *others)].count(1 + REPEATS + CONFIRMATIONS) == 1


async def test_shares_of_pages_are_compared_where_no_response_names_its_backend() -> None:
    class Pages(Pods):
        async def send(self, probe: Probe) -> Answer:
            return Answer(200, (), (await super().send(probe)).headers[0][1].encode())

    probe = Probe("a.test", "/", samples=200)
    session = Session(Pages(*"abbbbbbbbb" * 20), Pages(*"aaaaaabbbb" * 20), Options(rate=1e9), clock=MonotonicClock())
    (got,) = await session.run([probe], lambda _: None)

    assert [each.what for each in got.differences] == ["body shares"]


async def test_pods_that_agree_by_chance_at_first_are_checked_again() -> None:
    old, new = Named("a", "b", "a", "b"), Named("a")
    session = Session(old, new, Options(rate=1e9, backends_known=True), clock=MonotonicClock())

    (got,) = await session.run([Probe("a.test", "/")], lambda _: None)

    assert [each.what for each in got.differences] == ["backend shares"]


class Named(Pods):
    """Pods that take turns, and send their names."""

    def __init__(self, *order: str) -> None:
        super().__init__(*(order * 20))

    async def send(self, probe: Probe) -> Answer:
        found = await super().send(probe)
        return Answer(200, body=b"page", backend=found.headers[0][1])
