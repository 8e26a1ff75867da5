"""Threads for checks: who gets one, and what ends a check that does not return."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from apisix_ingress.webhook.threads import MOST_LOST, THREADS, Ended, Threads

BOUND = 30.0


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    found = Threads()
    yield found
    found.close()


async def run(threads: Threads, client: str, work: Callable[[], object], seconds: float = BOUND) -> object:
    return await threads.run(client, work, ends=asyncio.get_running_loop().time() + BOUND, seconds=seconds)


async def test_a_check_runs_outside_the_event_loop(threads: Threads) -> None:
    assert await run(threads, "a", threading.get_ident) != threading.get_ident()


async def test_an_error_of_a_check_reaches_the_caller(threads: Threads) -> None:
    with pytest.raises(ZeroDivisionError):
        await run(threads, "a", lambda: 1 // 0)
    assert await run(threads, "a", lambda: 1) == 1


async def test_a_check_that_does_not_return_is_ended(threads: Threads) -> None:
    ended = threading.Event()

    def endless() -> None:
        try:
            while True:
                try:
                    while True:
                        pass
                except Exception:  # it does not catch the end
                    pass
        except Ended:
            ended.set()
            raise

    with pytest.raises(TimeoutError):
        await run(threads, "a", endless, seconds=0.01)
    assert await asyncio.to_thread(ended.wait, BOUND)
    assert await run(threads, "a", lambda: 1) == 1


async def test_threads_that_cannot_be_ended_stop_further_checks_until_they_return(threads: Threads) -> None:
    go_on = threading.Event()
    for _ in range(MOST_LOST + 1):
        with pytest.raises(TimeoutError):
            await run(threads, "a", lambda: go_on.wait(BOUND), seconds=0.01)
    later = asyncio.create_task(run(threads, "b", lambda: 1))
    await asyncio.sleep(0)
    assert not later.done()
    go_on.set()
    assert await later == 1


async def test_a_client_leaves_a_thread_to_others(threads: Threads) -> None:
    go_on = threading.Event()
    many = [asyncio.create_task(run(threads, "a", lambda: go_on.wait(BOUND))) for _ in range(10 * THREADS)]
    assert await run(threads, "b", lambda: 1) == 1
    assert not any(task.done() for task in many)
    go_on.set()
    assert all(await asyncio.gather(*many))


async def test_a_free_thread_goes_to_the_client_with_the_fewest_checks(threads: Threads) -> None:
    begun: list[str] = []
    gates = {name: threading.Event() for name in ("a1", "a2", "b1", "b2", "c1")}

    def work(name: str) -> Callable[[], object]:
        def wait() -> None:
            begun.append(name)
            gates[name].wait(BOUND)

        return wait

    tasks = {}
    for name in gates:
        tasks[name] = asyncio.create_task(run(threads, name[0], work(name)))
        await asyncio.sleep(0)
    gates["a1"].set()
    await tasks["a1"]
    gates["c1"].set()
    await tasks["c1"]
    for gate in gates.values():
        gate.set()
    await asyncio.gather(*tasks.values())
    assert sorted(begun[:3]) == ["a1", "a2", "b1"]
    assert begun[3:] == ["c1", "b2"]


async def test_a_cancelled_turn_is_passed_on(threads: Threads) -> None:
    go_on = threading.Event()
    held = [asyncio.create_task(run(threads, client, lambda: go_on.wait(BOUND))) for client in ("a", "b", "c")]
    await asyncio.sleep(0)
    waiting = asyncio.create_task(run(threads, "d", lambda: 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go_on.set()
    await asyncio.gather(*held)
    assert await run(threads, "e", lambda: 2) == 2
    assert threads._waiting == {}
