"""The stores with one object over them; reading them changes nothing."""

import pytest

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX, PLUGIN_INDEX
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id
from apisix_ingress.model.objects import CustomObject, ReferenceGrant, Service
from apisix_ingress.state.view import oldest
from apisix_ingress.webhook.overlay import OverlayView
from tests.factories import make_custom, make_service
from tests.unit.apisix_ingress.webhook.worlds import make_world, plugin, route_spec

STORED = tuple(
    make_custom(name, kind="ApisixGlobalRule", spec={"plugins": [plugin(used)]})
    for name, used in (("a", "cors"), ("b", "redirect"), ("c", "cors"))
)


def view_of(item: CustomObject) -> OverlayView:
    world = make_world(make_service(), make_custom("claims", spec=route_spec()), *STORED)
    return OverlayView(world, item)


def names(view: OverlayView, used: str) -> list[str]:
    found = view.find(CustomObject, IndexKey("ApisixGlobalRule", PLUGIN_INDEX, used))
    return [item.meta.name for item in found]


def test_an_object_refers_to_the_stored_one() -> None:
    new = make_custom("a", kind="ApisixGlobalRule", spec={"plugins": [plugin("redirect")]})
    view = view_of(new)
    assert view.get(CustomObject, new.meta.key) is new
    assert (names(view, "cors"), names(view, "redirect")) == (["c"], ["a", "b"])
    assert names(view, "nothing") == []


def test_a_new_object_is_found_among_the_stored_ones() -> None:
    view = view_of(make_custom("bb", kind="ApisixGlobalRule", spec={"plugins": [plugin("cors")]}))
    assert names(view, "cors") == ["a", "bb", "c"]


@pytest.mark.parametrize(
    ("created", "want"),
    [("2020-01-01T00:00:00Z", ["new", "old", "older"]), ("2030-01-01T00:00:00Z", ["old", "older", "new"])],
)
def test_object_has_the_place_of_its_age(created: str, want: list[str]) -> None:
    spec = route_spec()
    world = make_world(make_service(), make_custom("old", spec=spec), make_custom("older", spec=spec))
    new = make_custom("new", spec=spec, created=created)
    (value,) = RESOURCES["ApisixRoute"].indexes[MATCHER_INDEX](new)
    index = IndexKey("ApisixRoute", MATCHER_INDEX, value)
    assert [item.meta.name for item in oldest(OverlayView(world, new), CustomObject, index)] == want
    other = OverlayView(world, make_custom("new", kind="ApisixTls"))
    assert [item.meta.name for item in oldest(other, CustomObject, index)] == ["old", "older"]


def test_other_kinds_are_as_they_are_stored_and_unread_kinds_are_empty() -> None:
    view = view_of(make_custom())
    service = make_service()
    assert view.get(Service, service.meta.key) == service
    assert view.get(Service, ObjectKey("Service", "default", "other")) is None
    assert view.get(ReferenceGrant, ObjectKey("ReferenceGrant", "default", "any")) is None
    assert view.find(ReferenceGrant, IndexKey("ReferenceGrant", "namespaces", "a/b")) == ()
    assert names(view, "cors") == ["a", "c"]


def test_ids_are_plain_and_claims_are_those_of_stored_objects() -> None:
    view = view_of(make_custom())
    assert view.record_id("routes", "default_web_rule") == short_id("default_web_rule")
    assert [claim.port for _, claim in view.claims_on(make_service().meta.key)] == [80]
