"""The records that a gateway should have for a set of objects."""

import hashlib
import random
import ssl
import zlib
from typing import Any

import pytest

from e2e.cluster.client import KubeClient
from e2e.faults.world import World, differences

NAME = "team_g0"
SHORT = f"{zlib.crc32(NAME.encode()):x}"
WIDE = hashlib.sha256(NAME.encode()).hexdigest()[:16]


class Gateway:
    """A gateway with global rules of these ids."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the records of a kind by id."""
        plugins = {"request-id": {"header_name": "X-1"}}
        return {id_: {"id": id_, "plugins": plugins} for id_ in self._ids if kind == "global_rules"}


@pytest.fixture
def world() -> World:
    """A world with one global rule."""
    api = KubeClient("https://127.0.0.1:1", tls=ssl.create_default_context())
    return World(api, "team", random.Random(0), rules={"g0": "X-1"})


@pytest.mark.parametrize("id_", [SHORT, WIDE])
def test_a_global_rule_may_have_either_of_its_ids(world: World, id_: str) -> None:
    assert differences(world.held(Gateway(id_)), world.expected()) == []


def test_a_global_rule_must_not_have_both_of_its_ids(world: World) -> None:
    assert differences(world.held(Gateway(SHORT, WIDE)), world.expected()) == [f"has global_rules/{WIDE} None"]
