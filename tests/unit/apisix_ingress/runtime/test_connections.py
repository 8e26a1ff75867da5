"""Connections: idle ones are closed, connections with a request stay."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from apisix_ingress.runtime.connections import Connections
from apisix_ingress.runtime.tasks import cancel
from tests.fakes.clock import FakeClock


class Handler:
    """The handler of one connection."""

    def __init__(self) -> None:
        self.is_closed = False

    def force_close(self) -> None:
        self.is_closed = True


@dataclass
class Server:
    """Makes handlers; `connections` are those whose TLS handshake is done."""

    made: list[Handler] = field(default_factory=list)
    connections: list[Handler] = field(default_factory=list)

    def __call__(self) -> Handler:
        self.made.append(Handler())
        return self.made[-1]


@dataclass
class Request:
    protocol: Handler


class Table:
    """Connections over such a server, with times of 15, 10 and 100 seconds."""

    def __init__(self, most: int = 3) -> None:
        self.server, self.clock = Server(), FakeClock()
        server: Any = self.server
        self.connections = Connections(server, self.clock, most, 15, 10, 100)

    def accept(self, *, opened: bool = True) -> Handler:
        handler: Any = self.connections.accept()
        assert isinstance(handler, Handler)
        if opened:
            self.server.connections.append(handler)
            self.connections.sweep()
        return handler

    def after(self, seconds: float) -> None:
        self.clock.shift(seconds)
        self.connections.sweep()

    def serve(self, handler: Handler, seconds: float = 0) -> None:
        request: Any = Request(handler)
        with self.connections.active(request):
            self.after(seconds)


def test_connection_without_a_request_is_closed_after_a_while() -> None:
    table = Table()
    handler = table.accept()
    table.after(10)
    assert not handler.is_closed
    table.after(1)
    assert (handler.is_closed, len(table.connections)) == (True, 0)


def test_time_in_the_handshake_is_ignored() -> None:
    table = Table()
    handler = table.accept(opened=False)
    table.after(14)
    table.server.connections.append(handler)
    table.after(0)
    table.after(9)
    assert not handler.is_closed


def test_connection_whose_handshake_never_ends_is_forgotten() -> None:
    table = Table()
    table.accept(opened=False)
    table.after(15)
    assert len(table.connections) == 1
    table.after(1)
    assert len(table.connections) == 0


def test_connection_that_had_a_request_may_be_idle_for_longer() -> None:
    table = Table()
    handler = table.accept()
    table.serve(handler)
    table.after(100)
    assert not handler.is_closed
    table.after(1)
    assert handler.is_closed


def test_a_connection_is_kept_while_a_request_is_processed() -> None:
    table = Table()
    handler = table.accept()
    table.serve(handler, seconds=1000)
    assert not handler.is_closed


def test_connection_that_its_client_closed_is_forgotten() -> None:
    table = Table()
    handler = table.accept()
    table.server.connections.remove(handler)
    table.serve(handler)
    assert len(table.connections) == 0


@pytest.mark.parametrize("busy", [0, 1])
def test_a_connection_above_the_limit_closes_the_longest_idle_one(busy: int) -> None:
    table = Table(most=2)
    handlers = []
    for _ in range(2):
        handlers.append(table.accept())
        table.after(1)
    request: Any = Request(handlers[0])
    if busy:
        with table.connections.active(request):
            table.accept()
    else:
        table.accept()
    assert [handler.is_closed for handler in handlers] == [not busy, bool(busy)]


def test_an_excess_connection_is_accepted_if_all_are_busy_or_in_their_handshake() -> None:
    table = Table(most=1)
    table.accept(opened=False)
    table.accept(opened=False)
    assert len(table.connections) == 2


async def test_connections_are_checked_only_while_there_are_any() -> None:
    table = Table()
    task = asyncio.create_task(table.connections.run())
    await table.clock.advance(1000)
    table.accept()
    await table.clock.advance(9)
    assert [each.is_closed for each in table.server.made] == [False]
    await table.clock.advance(2)
    assert [each.is_closed for each in table.server.made] == [True]
    await cancel(task)
