"""Sends every probe to both gateways at a limited rate, and separates real differences from variation.

Two different responses prove nothing: a backend may count requests, or several Pods may alternate. A probe with
different responses is therefore repeated, and an aspect is reported only if each gateway is consistent in it. If
several backends respond, their shares are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from apisix_ingress.runtime.clock import Clock
from apisix_ingress.verify.compare import Aspect, Difference, Facts, differences, facts
from apisix_ingress.verify.model import Address, Answer, Probe
from apisix_ingress.verify.statistics import shifted

REPEATS = 4
"""Further requests to each gateway if two responses differ."""

CONFIRMATIONS = 8
"""More requests to each gateway if a difference remains that several Pods may cause by chance."""

LOOKS = 3
"""Requests to each gateway that find out whether the Pods of an Ingress alternate, if responses name them."""

BALANCED = 30
"""Requests to each gateway if several backends alternate: enough to detect that one of two is missing."""


_OF_PODS: frozenset[Aspect] = frozenset({"header", "cookie", "body"})
"""Aspects in which Pods of one Service differ, for example by their name."""


FEW = 6
"""Different pages of one request that may be those of its backends; more of them are counters or times."""


class Sender(Protocol):
    """Sends requests to one gateway."""

    @property
    def address(self) -> Address:
        """The gateway."""

    async def send(self, probe: Probe) -> Answer:
        """Return the response; a failure is a response with `error`."""


@dataclass(frozen=True, slots=True)
class Options:
    """How requests are sent.

    Attributes:
        rate: Requests per second to each gateway.
        concurrency: Maximum number of concurrent probes.
        ignored_headers: Headers to ignore, in lower case.
        backends_known: Whether responses identify their backend.
    """

    rate: float = 20.0
    concurrency: int = 4
    ignored_headers: frozenset[str] = frozenset()
    backends_known: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one probe.

    Attributes:
        differences: Empty if both gateways respond alike.
        status: The status of the old gateway; 0 if it did not respond.
        requests: Requests to each gateway.
    """

    probe: Probe
    differences: tuple[Difference, ...]
    status: int
    requests: int


@dataclass(slots=True)
class RateLimit:
    """Lets requests start at a rate; one per gateway, so that each is protected separately."""

    clock: Clock
    rate: float
    _next: float = field(default=0.0, init=False)

    async def turn(self) -> None:
        """Return when the next request may start."""
        now = self.clock.monotonic()
        start = max(now, self._next)
        self._next = start + 1 / self.rate
        if start > now:
            await self.clock.sleep(start - now)


class Session:
    """Compares two gateways.

    Args:
        old: The gateway with the expected responses.
        new: The gateway under examination.
        options: Rate and samples.
        clock: Measures the rate.
    """

    def __init__(self, old: Sender, new: Sender, options: Options, *, clock: Clock) -> None:
        self._sides = (old, new)
        self._options = options
        self._paces = tuple(RateLimit(clock, options.rate) for _ in self._sides)
        self._hosts: dict[str, asyncio.Lock] = {}
        self._confirmed: set[Difference] = set()
        self._looked_at: set[tuple[str, str]] = set()

    async def run(self, probes: Sequence[Probe], progress: Callable[[int], None]) -> list[Finding]:
        """Return a finding for each probe, in their order.

        Args:
            probes: The requests.
            progress: Called with the number of finished probes.
        """
        found: dict[int, Finding] = {}
        todo = iter(enumerate(probes))

        async def work() -> None:
            for index, probe in todo:
                found[index] = await self._examine(probe)
                progress(len(found))

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self._options.concurrency, len(probes))):
                workers.create_task(work())
        return [found[index] for index in range(len(probes))]

    async def _examine(self, probe: Probe) -> Finding:
        rounds = [pair async for pair in self._rounds(probe, self._first(probe))]
        if any(differences(*rounds[0])):
            # Concurrent requests to one Service could take its Pods in step: each would always get the same Pod.
            async with self._hosts.setdefault(probe.host, asyncio.Lock()):
                rounds += [pair async for pair in self._rounds(probe, REPEATS)]
                if any(each not in self._confirmed for each in _of_pods(rounds)):
                    rounds += [pair async for pair in self._rounds(probe, CONFIRMATIONS)]
                    self._confirmed.update(_of_pods(rounds))
        if _varies(rounds, ("backend", "")) or probe.samples > 1:
            rounds += [pair async for pair in self._rounds(probe, max(probe.samples, BALANCED) - len(rounds))]
        status = int(rounds[0][0].get(("status", ""), "0"))
        return Finding(probe, tuple(_consistent(rounds)), status, len(rounds))

    def _first(self, probe: Probe) -> int:
        """Return the number of requests before a decision; several find out once per Ingress whether Pods alternate."""
        place = (probe.host, probe.origin)
        if not self._options.backends_known or place in self._looked_at:
            return 1
        self._looked_at.add(place)
        return LOOKS

    async def _rounds(self, probe: Probe, count: int) -> AsyncIterator[tuple[Facts, Facts]]:
        for _ in range(count):
            old, new = await asyncio.gather(*(self._facts(probe, side) for side in (0, 1)))
            yield old, new

    async def _facts(self, probe: Probe, side: int) -> Facts:
        await self._paces[side].turn()
        sender = self._sides[side]
        return facts(await sender.send(probe), probe, sender.address, self._options.ignored_headers)


Rounds = Sequence[tuple[Facts, Facts]]


def _consistent(rounds: Rounds) -> Iterable[Difference]:
    """Yield the differences of the first round that persist in all of them, and a shift of the backends."""
    shift = _shift(rounds)
    for found in differences(*rounds[0]):
        key = (found.aspect, found.name)
        if key == ("backend", "") and _varies(rounds, key):
            continue  # judged as a distribution
        if not _varies(rounds, key) or _never_equal(rounds, key):
            yield found
    if shift is not None:
        yield shift


def _of_pods(rounds: Rounds) -> list[Difference]:
    """Return the differences that several Pods of a Service may cause by chance."""
    return [each for each in _consistent(rounds) if each.aspect in _OF_PODS]


def _varies(rounds: Rounds, key: tuple[Aspect, str]) -> bool:
    """Return whether either gateway varies in an aspect."""
    return any(len({pair[side].get(key) for pair in rounds}) > 1 for side in (0, 1))


def _never_equal(rounds: Rounds, key: tuple[Aspect, str]) -> bool:
    """Return whether a varying aspect exists on one side only, in every round."""
    sides = [{pair[side].get(key) is None for pair in rounds} for side in (0, 1)]
    return all(len(each) == 1 for each in sides) and sides[0] != sides[1]


def _shift(rounds: Rounds) -> Difference | None:
    """Return the difference between the shares of backends, if there is one."""
    key = _identity(rounds)
    if not _varies(rounds, key):
        return None
    old, new = ([pair[side].get(key, "none") for pair in rounds] for side in (0, 1))
    moved = shifted(old, new)
    return Difference(key[0], _shares(old, moved), _shares(new, moved), "shares") if moved else None


def _identity(rounds: Rounds) -> tuple[Aspect, str]:
    """Return the aspect that distinguishes backends: their name, or without one, the page if there are few of them."""
    named = any(("backend", "") in facts for pair in rounds for facts in pair)
    pages = {facts.get(("body", "")) for pair in rounds for facts in pair}
    return ("body", "") if not named and len(rounds) >= BALANCED and len(pages) <= FEW else ("backend", "")


def _shares(found: Sequence[str], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {found.count(name) / len(found):.0%}" for name in names)
