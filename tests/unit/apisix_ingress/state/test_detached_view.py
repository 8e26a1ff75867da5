"""A view for a translation in a thread: each read keeps its first answer, and nothing is given to two."""

from __future__ import annotations

import pytest

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.model.resources import RESOURCES
from apisix_ingress.state.detached_view import DetachedView
from apisix_ingress.state.host_holders import below_read
from apisix_ingress.state.id_table import id_read
from apisix_ingress.state.world import World
from tests.factories import make_claim, make_claimant, make_custom, make_key, make_service
from tests.forging import forge

WEB = make_key("web", kind="Service")
BY_HOST = IndexKey("ApisixRoute", "host", "a.test")


@pytest.fixture
def world() -> World:
    found = World([RESOURCES[kind] for kind in ("Service", "ApisixRoute")])
    found.ids.settle()
    found.host_holders.settle()
    return found


def answers(view: DetachedView) -> list[object]:
    """Return what a view answers to every question."""
    return [
        view.get(Service, WEB),
        view.find(CustomObject, BY_HOST),
        [*view.oldest(CustomObject, BY_HOST)],
        view.record_id("routes", "one"),
        view.claims_on(WEB),
        view.host_holder("a.test"),
        view.holders_below("*.test"),
    ]


def change(world: World) -> None:
    """Change the answer to every question, but for the id."""
    world.stores["Service"].set(make_service())
    match = {"hosts": ["a.test"], "paths": ["/*"]}
    world.stores["ApisixRoute"].set(make_custom(spec={"http": [{"name": "r", "match": match}]}))
    world.claims.replace(make_claimant(), [make_claim()])
    world.host_holders.claim(make_key("web"), ["a.test"])


def test_each_read_keeps_its_first_answer(world: World) -> None:
    early, late = world.detached_view(), world.detached_view()
    before = answers(early)
    change(world)
    assert answers(early) == before
    same = [one == other for one, other in zip(answers(late), before, strict=True)]
    assert same == [False, False, False, True, False, False, False]
    assert early.reads == late.reads
    assert {id_read("routes", "one"), below_read("*.test"), WEB, BY_HOST} <= {*early.reads}


def test_new_names_are_entered_when_confirmed(world: World) -> None:
    view = world.detached_view()
    assert view.record_id("routes", "one") == short_id("one")
    assert world.ids.known_id("routes", "one") == ""
    assert view.confirm()
    assert world.ids.known_id("routes", "one") == short_id("one")


def test_ids_that_two_names_would_get_are_not_confirmed(world: World) -> None:
    view, twin = world.detached_view(), forge("one", "x")
    assert view.record_id("routes", "one") == view.record_id("routes", twin) == short_id("one")
    assert not view.confirm()
    again = world.detached_view()
    assert [again.record_id("routes", name) for name in ("one", twin)] == [short_id("one"), wide_id(twin)]
    assert again.confirm()


@pytest.mark.parametrize("asked", ["a.test", "*.test"])
def test_hosts_that_somebody_took_meanwhile_are_not_confirmed(world: World, asked: str) -> None:
    view = world.detached_view()
    view.host_holder(asked)
    view.holders_below(asked)
    assert view.confirm()
    world.host_holders.claim(make_key("web"), ["a.test"])
    assert not view.confirm()


def test_what_changes_while_it_is_looked_up_is_looked_up_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [RuntimeError("dictionary changed size during iteration"), KeyError("gone")]
    holder = world.host_holders.holder

    def unsteady(host: str) -> str:
        if failures:
            raise failures.pop()
        return holder(host)

    monkeypatch.setattr(world.host_holders, "holder", unsteady)
    assert world.detached_view().host_holder("a.test") == ""


def test_what_fails_all_the_time_is_raised(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(host: str) -> str:
        raise KeyError(host)

    monkeypatch.setattr(world.host_holders, "holder", broken)
    with pytest.raises(KeyError):
        world.detached_view().host_holder("a.test")
