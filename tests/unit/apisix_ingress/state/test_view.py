"""What a tracking view returns and notes."""

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kube import EndpointSlice, Pod
from apisix_ingress.model.names import short_id
from apisix_ingress.model.resources import RESOURCES, SLICES_BY_SERVICE
from apisix_ingress.state.ids import id_read
from apisix_ingress.state.world import World
from tests.factories import make_claim, make_claimant, make_key, make_pod, make_slice

WEB = IndexKey("EndpointSlice", SLICES_BY_SERVICE, "default/web")
POD = make_key("web-0", kind="Pod")


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


def test_store_that_is_still_empty_is_asked_all_the_same() -> None:
    view = make_world("Pod", "EndpointSlice").view()
    assert (view.get(Pod, POD), view.find(EndpointSlice, WEB)) == (None, ())


def test_id_of_a_name_is_noted() -> None:
    view = make_world().view()
    assert view.record_id("routes", "one") == short_id("one")
    assert list(view.reads) == [id_read("routes", "one")]


def test_claims_are_no_reads() -> None:
    world = make_world()
    world.claims.replace(make_claimant("old", created="1"), [make_claim()])
    world.claims.replace(make_claimant("new", created="2"), [make_claim()])
    view = world.view()
    assert view.claims_on(make_key("web", kind="Service")) == ((make_claimant("old", created="1"), make_claim()),)
    assert not view.reads
