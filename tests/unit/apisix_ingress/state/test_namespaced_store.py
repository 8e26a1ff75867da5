"""Parts of a store: each has its own objects, and the store is complete when all parts are."""

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Meta, Service
from apisix_ingress.state.namespaced_store import NamespacedStore, portions
from apisix_ingress.state.store import Store


def service(namespace: str, name: str) -> Service:
    return Service(Meta("Service", namespace, name))


def store_and_portions() -> tuple[Store[Service], dict[str, NamespacedStore]]:
    store: Store[Service] = Store("Service", lambda read: None)
    return store, portions(store, ["a", "b"])


def test_a_portion_holds_the_objects_of_its_namespace() -> None:
    store, parts = store_and_portions()
    assert parts["a"].set(service("a", "web"))
    assert parts["b"].set(service("b", "web"))
    assert not parts["b"].set(service("b", "web"))
    key = ObjectKey("Service", "a", "web")
    assert (parts["a"].keys(), len(parts["a"]), len(store)) == ((key,), 1, 2)
    assert parts["a"].get(key) == store.get(key) == service("a", "web")
    assert parts["a"].delete(key)
    assert not parts["a"].delete(key)
    assert store.keys() == parts["b"].keys() == (ObjectKey("Service", "b", "web"),)


def test_a_store_is_complete_once_every_portion_is() -> None:
    store, parts = store_and_portions()
    parts["a"].synced = True
    assert (parts["a"].synced, parts["b"].synced, store.synced) == (True, False, False)
    parts["b"].synced = True
    assert (parts["b"].synced, store.synced) == (True, True)


def test_a_part_is_not_complete_by_being_marked_incomplete() -> None:
    store, parts = store_and_portions()
    parts["a"].synced = False
    assert (parts["a"].synced, store.synced) == (False, False)
