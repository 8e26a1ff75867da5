"""The room for requests: what one client may take, and what it leaves to others."""

from contextlib import ExitStack

import pytest

from apisix_ingress.webhook.room import Full, Room


def taken(stack: ExitStack, room: Room, client: str, size: int = 0) -> int:
    """Take room for requests until it is full; return their number."""
    count = 0
    while True:
        try:
            stack.enter_context(room.taken(client, size))
        except Full:
            return count
        count += 1


def test_each_client_gets_half_of_what_the_others_leave() -> None:
    room = Room(requests=100, memory=0)
    with ExitStack() as stack:
        assert [taken(stack, room, client) for client in ("a", "b", "c", "d")] == [50, 25, 12, 6]


def test_bytes_are_shared_like_requests() -> None:
    room = Room(requests=1000, memory=100)
    with ExitStack() as stack:
        assert [taken(stack, room, client, 10) for client in ("a", "b", "c")] == [5, 2, 1]


def test_room_is_free_again_when_its_requests_end() -> None:
    room = Room(requests=4, memory=100)
    for _ in range(2):
        with ExitStack() as stack:
            assert taken(stack, room, "a", 1) == 2
    assert (dict(room._requests), dict(room._memory)) == ({}, {})


def test_a_rejected_request_takes_no_room() -> None:
    room = Room(requests=4, memory=10)
    with pytest.raises(Full), room.taken("a", 6):
        pass
    with room.taken("a", 5):
        pass
