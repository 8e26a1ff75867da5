"""ApisixClusterConfig and the address of its cluster: which objects report it, and when."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from tests.factories import make_custom
from tests.fakes.clock import FakeClock
from translation.core.options import Options

URL = "http://apisix:9180/apisix/admin"
HERE, THERE = AdminAddress(URL, "one"), AdminAddress("http://other:9180/apisix/admin", "two")


def config(admin: Mapping[str, Any] | None = None, *, name: str = "default", **spec: Any) -> CustomObject:
    whole = {**spec, **({"admin": admin} if admin is not None else {})}
    return make_custom(name, kind="ApisixClusterConfig", namespace="", spec=whole)


def at(address: AdminAddress) -> CustomObject:
    return config({"baseURL": address.url, "adminKey": address.key})


class Follower(ChangeSink):
    """World and registry, and the reported addresses."""

    def __init__(self, **options: Any) -> None:
        chosen = Options(**options)
        self.addresses: list[tuple[str, AdminAddress | None]] = []
        self.world = World(resources(chosen))
        self.registry = Registry(self.world, chosen, self, clock=FakeClock(), rng=random.Random(0))

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        self.addresses.append((name, address))

    def set(self, item: CustomObject) -> None:
        self.world.stores["ApisixClusterConfig"].set(item)
        self.registry.settle()

    def delete(self, item: CustomObject) -> None:
        self.world.stores["ApisixClusterConfig"].delete(item.meta.key)
        self.registry.settle()


def test_each_change_of_the_address_is_reported_once() -> None:
    follower = Follower()
    for item in (at(HERE), at(HERE), at(THERE), at(HERE)):
        follower.set(item)
    assert follower.addresses == [("default", HERE), ("default", THERE), ("default", HERE)]


@pytest.mark.parametrize("change", ["delete", "without admin", "not ours"])
def test_the_settings_apply_again_without_the_address(change: str) -> None:
    follower = Follower(ingress_class="mine")
    follower.set(at(HERE))
    if change == "delete":
        follower.delete(at(HERE))
    else:
        follower.set(config() if change == "without admin" else config({"baseURL": URL}, ingressClassName="other"))
    assert follower.addresses == [("default", HERE), ("default", None)]


@pytest.mark.parametrize(
    "bad",
    [
        config({"baseURL": "http://gw:99999"}),
        config({"baseURL": THERE.url, "adminKey": "a b"}),
        config({"baseURL": THERE.url}, monitoring=7),
        config({"baseURL": THERE.url, "adminKey": "edd1c9f034335f136f87ad84b625c8f1"}),
    ],
)
def test_unusable_addresses_change_nothing(bad: CustomObject) -> None:
    follower = Follower(published_keys="refuse")
    follower.set(at(HERE))
    follower.set(bad)
    follower.set(at(HERE))
    assert follower.addresses == [("default", HERE)]


def test_an_object_not_named_like_a_cluster_moves_no_cluster() -> None:
    follower = Follower()
    follower.set(config({"baseURL": URL}, name="other"))
    assert follower.addresses == []
