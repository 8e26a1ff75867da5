"""The world: how its parts are wired."""

from apisix_ingress.model.keys import IndexKey, Read
from apisix_ingress.model.kinds.indexes import SLICES_BY_SERVICE
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.state.ids.id_table import id_read
from apisix_ingress.state.world import World
from tests.factories import COLLIDING, make_claimant, make_key, make_pod, make_record, make_slice


def make_world() -> World:
    return World([RESOURCES["Pod"], RESOURCES["EndpointSlice"]])


def test_world_is_synced_once_every_store_is() -> None:
    world = make_world()
    world.stores["Pod"].synced = True
    assert not world.synced
    world.stores["EndpointSlice"].synced = True
    assert world.synced


def test_changes_before_the_first_listener_are_kept_without_notification() -> None:
    world = make_world()
    world.stores["Pod"].set(make_pod())
    assert world.stores["Pod"].values() == (make_pod(),)


def test_a_listener_is_notified_of_objects_indexes_and_ids() -> None:
    world = make_world()
    heard: list[Read] = []
    world.listen(heard.append)
    world.stores["Pod"].set(make_pod())
    world.stores["EndpointSlice"].set(make_slice())
    for name in (COLLIDING[1], COLLIDING[0]):
        world.desired.replace(make_claimant(name), [make_record(name)])
    assert heard == [
        make_pod().meta.key,
        make_slice().meta.key,
        IndexKey("EndpointSlice", SLICES_BY_SERVICE, "default/web"),
        id_read("routes", COLLIDING[0]),
        id_read("routes", COLLIDING[1]),
    ]


def test_an_unread_object_is_still_stored() -> None:
    world = make_world()
    world.stores["Pod"].set(make_pod())
    world.dependents.record(make_key(), [make_pod().meta.key])
    world.dependents.record(make_key(), [])
    assert len(world.stores["Pod"]) == 1


def test_an_unread_name_is_forgotten() -> None:
    world = make_world()
    heard: list[Read] = []
    world.listen(heard.append)
    view = world.view()
    view.record_id("routes", COLLIDING[1])
    world.dependents.record(make_key(), view.reads)
    world.dependents.record(make_key(), [])
    world.ids.use("routes", COLLIDING[0], make_claimant())
    assert heard == []
    world.ids.release("routes", COLLIDING[0], make_claimant())
    assert not world.ids.known("routes")
