"""What views return and record, on the event loop and in a thread."""

from dataclasses import replace

import pytest

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX, SLICES_BY_SERVICE
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.objects import CustomObject, EndpointSlice, Pod, Service
from apisix_ingress.state.hosts.host_holders import below_read
from apisix_ingress.state.ids.id_table import id_read
from apisix_ingress.state.store import TOP, beyond_top
from apisix_ingress.state.view import DetachedView, TrackingView, oldest, oldest_seconds
from apisix_ingress.state.world import World
from tests.factories import make_claim, make_claimant, make_custom, make_key, make_pod, make_service, make_slice
from tests.forging import forge

WEB = IndexKey("EndpointSlice", SLICES_BY_SERVICE, "default/web")
POD = make_key("web-0", kind="Pod")
BARE = {"http": {"paths": [{"pathType": "Prefix", "path": "/"}]}}


def make_world(*kinds: str) -> World:
    return World([RESOURCES[kind] for kind in kinds])


def test_found_and_missing_objects_are_noted() -> None:
    world = make_world("Pod")
    world.stores["Pod"].set(make_pod())
    view = world.view()
    missing = make_key("gone", kind="Pod")
    assert (view.get(Pod, POD), view.get(Pod, missing)) == (make_pod(), None)
    assert list(view.reads) == [POD, missing]


def test_indexes_are_noted_found_or_empty() -> None:
    world = make_world("EndpointSlice")
    world.stores["EndpointSlice"].set(make_slice())
    view = world.view()
    other = WEB._replace(value="default/api")
    assert (view.find(EndpointSlice, WEB), view.find(EndpointSlice, other)) == ((make_slice(),), ())
    assert list(view.reads) == [WEB, other]


def test_kind_that_is_not_watched_has_no_objects() -> None:
    view = make_world().view()
    assert (view.get(Pod, POD), view.find(EndpointSlice, WEB)) == (None, ())
    assert list(view.reads) == [POD, WEB]


def test_an_empty_store_is_still_queried() -> None:
    view = make_world("Pod", "EndpointSlice").view()
    assert (view.get(Pod, POD), view.find(EndpointSlice, WEB)) == (None, ())


def test_id_of_a_name_is_noted() -> None:
    view = make_world().view()
    assert view.record_id("routes", "one") == short_id("one")
    assert list(view.reads) == [id_read("routes", "one")]


def test_claims_are_not_reads() -> None:
    world = make_world()
    world.claims.replace(make_claimant("old", created="1"), [make_claim()])
    world.claims.replace(make_claimant("new", created="2"), [make_claim()])
    view = world.view()
    assert view.claims_on(make_key("web", kind="Service")) == ((make_claimant("old", created="1"), make_claim()),)
    assert not view.reads


def test_the_examined_depth_of_a_ranked_index_is_recorded() -> None:
    world = make_world("Ingress")
    index = IndexKey("Ingress", MATCHER_INDEX, "\n/*\n")
    many = [make_custom(f"i{number:02}", kind="Ingress", spec={"rules": [BARE]}) for number in range(TOP + 1)]
    for item in many:
        world.stores["Ingress"].set(item)
    view = world.view()
    assert next(iter(oldest(view, CustomObject, index))) == many[0]
    assert list(view.reads) == [index]
    assert list(view.oldest(CustomObject, index)) == many
    assert list(view.reads) == [index, beyond_top(index)]
    assert list(make_world().view().oldest(CustomObject, index)) == []


class Plain:
    """A view without ranked indexes."""

    def __init__(self, view: TrackingView) -> None:
        self.get = view.get
        self.find = view.find
        self.record_id = view.record_id
        self.claims_on = view.claims_on
        self.host_holder = view.host_holder
        self.holders_below = view.holders_below


def test_an_unranked_view_also_lists_the_oldest_first() -> None:
    world = make_world("Ingress")
    old, new = (make_custom(name, kind="Ingress", spec={"rules": [BARE]}) for name in ("z", "a"))
    old = replace(old, meta=replace(old.meta, created="1999-01-01T00:00:00Z"))
    for item in (new, old):
        world.stores["Ingress"].set(item)
    got = oldest(Plain(world.view()), CustomObject, IndexKey("Ingress", MATCHER_INDEX, "\n/*\n"))
    assert list(got) == [old, new]


def test_objects_of_one_second_can_be_read_in_the_reverse_order_of_their_names() -> None:
    world = make_world("Ingress")
    index = IndexKey("Ingress", MATCHER_INDEX, "\n/*\n")
    old, *same = (make_custom(name, kind="Ingress", spec={"rules": [BARE]}) for name in ("m", "a", "b", "z"))
    old = replace(old, meta=replace(old.meta, created="1999-01-01T00:00:00Z"))
    view = world.view()
    assert list(oldest_seconds(view, CustomObject, index)) == []
    for item in (*same, old):
        world.stores["Ingress"].set(item)

    detached = DetachedView(world.stores, world.ids, world.claims, world.host_holders)
    got = [list(oldest_seconds(each, CustomObject, index)) for each in (view, detached, Plain(view))]

    assert got == 3 * [[old, *reversed(same)]]
    assert list(make_world().view().oldest_seconds(CustomObject, index)) == []


def test_one_object_of_a_second_depends_on_all_of_them() -> None:
    world = make_world("Ingress")
    index = IndexKey("Ingress", MATCHER_INDEX, "\n/*\n")
    for number in range(TOP + 1):
        world.stores["Ingress"].set(make_custom(f"i{number:02}", kind="Ingress", spec={"rules": [BARE]}))
    view = world.view()

    assert next(iter(oldest_seconds(view, CustomObject, index))).meta.name == f"i{TOP}"
    assert list(view.reads) == [index, beyond_top(index)]


# Views for translations in a thread.

SERVICE = make_key("web", kind="Service")
BY_HOST = IndexKey("ApisixRoute", "host", "a.test")


@pytest.fixture
def empty() -> World:
    found = World([RESOURCES[kind] for kind in ("Service", "ApisixRoute")])
    found.ids.settle()
    found.host_holders.settle()
    return found


def answers(view: DetachedView) -> list[object]:
    """Return the results of all methods of a view."""
    return [
        view.get(Service, SERVICE),
        view.find(CustomObject, BY_HOST),
        [*view.oldest(CustomObject, BY_HOST)],
        view.record_id("routes", "one"),
        view.claims_on(SERVICE),
        view.host_holder("a.test"),
        view.holders_below("*.test"),
    ]


def change(world: World) -> None:
    """Change the results of all methods, except ids."""
    world.stores["Service"].set(make_service())
    match = {"hosts": ["a.test"], "paths": ["/*"]}
    world.stores["ApisixRoute"].set(make_custom(spec={"http": [{"name": "r", "match": match}]}))
    world.claims.replace(make_claimant(), [make_claim()])
    world.host_holders.claim(make_key("web"), ["a.test"])


def test_each_read_keeps_its_first_answer(empty: World) -> None:
    early, late = empty.detached_view(), empty.detached_view()
    before = answers(early)
    change(empty)
    assert answers(early) == before
    same = [one == other for one, other in zip(answers(late), before, strict=True)]
    assert same == [False, False, False, True, False, False, False]
    assert early.reads == late.reads
    assert {id_read("routes", "one"), below_read("*.test"), SERVICE, BY_HOST} <= {*early.reads}


def test_new_names_are_entered_when_confirmed(empty: World) -> None:
    view = empty.detached_view()
    assert view.record_id("routes", "one") == short_id("one")
    assert empty.ids.known_id("routes", "one") == ""
    assert view.confirm()
    assert empty.ids.known_id("routes", "one") == short_id("one")


def test_ids_that_two_names_would_get_are_not_confirmed(empty: World) -> None:
    view, twin = empty.detached_view(), forge("one", "x")
    assert view.record_id("routes", "one") == view.record_id("routes", twin) == short_id("one")
    assert not view.confirm()
    again = empty.detached_view()
    assert [again.record_id("routes", name) for name in ("one", twin)] == [short_id("one"), wide_id(twin)]
    assert again.confirm()


@pytest.mark.parametrize("asked", ["a.test", "*.test"])
def test_hosts_taken_over_meanwhile_are_not_confirmed(empty: World, asked: str) -> None:
    view = empty.detached_view()
    view.host_holder(asked)
    view.holders_below(asked)
    assert view.confirm()
    empty.host_holders.claim(make_key("web"), ["a.test"])
    assert not view.confirm()


def test_a_lookup_is_repeated_if_the_value_changes_meanwhile(empty: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [RuntimeError("dictionary changed size during iteration"), KeyError("gone")]
    holder = empty.host_holders.holder

    def unsteady(host: str) -> str:
        if failures:
            raise failures.pop()
        return holder(host)

    monkeypatch.setattr(empty.host_holders, "holder", unsteady)
    assert empty.detached_view().host_holder("a.test") == ""


def test_a_permanent_failure_is_raised(empty: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(host: str) -> str:
        raise KeyError(host)

    monkeypatch.setattr(empty.host_holders, "holder", broken)
    with pytest.raises(KeyError):
        empty.detached_view().host_holder("a.test")
