"""Stores: their content and their notifications."""

from dataclasses import replace

from apisix_ingress.model.keys import IndexKey, Read
from apisix_ingress.model.kinds.indexes import SLICES_BY_SERVICE
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import EndpointSlice, KubeObject, Pod
from apisix_ingress.state.store import TOP, Store, beyond_top
from tests.factories import make_custom, make_endpoint, make_key, make_pod, make_slice

POD = make_key("a", kind="Pod")
WEB = IndexKey("EndpointSlice", SLICES_BY_SERVICE, "default/web")
API = IndexKey("EndpointSlice", SLICES_BY_SERVICE, "default/api")


def make_store() -> tuple[Store[Pod], list[Read]]:
    heard: list[Read] = []
    return Store("Pod", heard.append), heard


def make_slices() -> tuple[Store[EndpointSlice], list[Read]]:
    heard: list[Read] = []
    return Store("EndpointSlice", heard.append, RESOURCES["EndpointSlice"].indexes), heard


def test_a_new_object_is_stored_and_notified() -> None:
    store, heard = make_store()
    assert store.set(make_pod("a"))
    assert (store.get(POD), store.keys(), store.values(), len(store)) == (make_pod("a"), (POD,), (make_pod("a"),), 1)
    assert heard == [POD]


def test_equal_object_is_silent_yet_refreshes_what_is_never_compared() -> None:
    heard: list[Read] = []
    store: Store[KubeObject] = Store("ApisixRoute", heard.append)
    store.set(make_custom(resource_version="1"))
    heard.clear()
    newer = make_custom(resource_version="2", status={"conditions": []})
    assert not store.set(newer)
    assert heard == []
    assert store.get(newer.meta.key) is newer


def test_a_change_notifies_the_key_of_the_object() -> None:
    store, heard = make_store()
    store.set(make_pod("a"))
    assert store.set(make_pod("a", labels={"version": "v2"}))
    assert heard == [POD, POD]


def test_a_deleted_object_is_removed_and_notified_once() -> None:
    store, heard = make_store()
    store.set(make_pod("a"))
    heard.clear()
    assert (store.delete(POD), store.delete(POD)) == (True, False)
    assert (store.get(POD), len(store), heard) == (None, 0, [POD])


def test_index_lists_objects_by_value_sorted_by_key() -> None:
    store, heard = make_slices()
    for name in ("web-2", "web-1"):
        store.set(make_slice(name))
    assert store.by_index(SLICES_BY_SERVICE, "default/web") == (make_slice("web-1"), make_slice("web-2"))
    assert store.by_index(SLICES_BY_SERVICE, "default/api") == ()
    assert heard.count(WEB) == 2


def test_object_without_an_index_value_is_in_no_index() -> None:
    store, heard = make_slices()
    store.set(make_slice(service=""))
    assert heard == [make_slice().meta.key]


def test_a_change_notifies_the_index_value_of_the_object() -> None:
    store, heard = make_slices()
    store.set(make_slice())
    heard.clear()
    store.set(make_slice(endpoints=[make_endpoint("10.0.0.2")]))
    assert heard == [make_slice().meta.key, WEB]


def test_a_moved_object_notifies_both_index_values() -> None:
    store, heard = make_slices()
    store.set(make_slice())
    heard.clear()
    store.set(make_slice(service="api"))
    assert heard == [make_slice().meta.key, WEB, API]
    assert store.by_index(SLICES_BY_SERVICE, "default/web") == ()
    assert store.by_index(SLICES_BY_SERVICE, "default/api") == (make_slice(service="api"),)


def test_index_keeps_nothing_of_deleted_objects() -> None:
    store, _ = make_slices()
    for name in ("web-1", "web-2"):
        store.set(make_slice(name))
    store.delete(make_slice("web-1").meta.key)
    assert store.by_index(SLICES_BY_SERVICE, "default/web") == (make_slice("web-2"),)
    store.delete(make_slice("web-2").meta.key)
    assert not store._indexed


def make_ranked(*days: int) -> tuple[Store[Pod], list[Read]]:
    """Return a store of pods p0, p1 … born on these days, all under one value of a ranked index."""
    heard: list[Read] = []
    store: Store[Pod] = Store("Pod", heard.append, {"all": lambda pod: ["x"]}, frozenset({"all"}))
    for number, day in enumerate(days):
        store.set(born(number, day))
    heard.clear()
    return store, heard


def born(number: int, day: int, **fields: str) -> Pod:
    pod = make_pod(f"p{number}", labels=fields)
    return replace(pod, meta=replace(pod.meta, created=f"2026-01-{day:02}T00:00:00Z" if day else ""))


ALL = IndexKey("Pod", "all", "x")


def names(store: Store[Pod]) -> list[str]:
    return [pod.meta.name for pod in store.oldest(IndexKey("Pod", "all", "x"))]


def test_ranked_index_has_the_oldest_first_and_what_has_no_age_last() -> None:
    store, _ = make_ranked(2, 0, 1, 1)
    assert names(store) == ["p2", "p3", "p0", "p1"]


def test_a_ranked_index_follows_added_deleted_and_recreated_objects() -> None:
    store, _ = make_ranked(1)
    assert names(store) == ["p0"]
    store.set(born(1, 2))
    store.set(born(0, 3))
    assert names(store) == ["p1", "p0"]
    store.delete(make_key("p1", kind="Pod"))
    assert names(store) == ["p0"]
    store.delete(make_key("p0", kind="Pod"))
    assert names(store) == []


def test_a_change_beyond_the_first_members_notifies_only_readers_that_read_that_far() -> None:
    store, heard = make_ranked(*range(1, TOP + 2))
    store.set(born(TOP, TOP + 1, version="v2"))
    assert heard == [make_key(f"p{TOP}", kind="Pod"), beyond_top(ALL)]
    heard.clear()
    store.set(born(0, 1, version="v2"))
    assert heard == [make_key("p0", kind="Pod"), ALL]
    heard.clear()
    store.set(born(0, 31))
    assert heard == [make_key("p0", kind="Pod"), ALL, beyond_top(ALL)]


def test_callbacks_are_called_once_after_the_first_complete_list() -> None:
    store, _ = make_store()
    called: list[str] = []
    store.when_synced(lambda: called.append("before"))
    assert (store.synced, called) == (False, [])
    store.synced = True
    store.synced = True
    store.when_synced(lambda: called.append("after"))
    assert (store.synced, called) == (True, ["before", "after"])
