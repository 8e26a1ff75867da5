"""Reads of owners, and the way back."""

from apisix_ingress.model.keys import IndexKey, Read
from apisix_ingress.state.dependents import Dependents
from tests.factories import make_key

WEB, API = make_key("web"), make_key("api")
SECRET, SLICES = make_key("cert", kind="Secret"), IndexKey("EndpointSlice", "service", "default/web")


def test_owner_is_found_by_each_of_its_reads() -> None:
    dependents = Dependents()
    dependents.record(WEB, [SECRET, SLICES, SECRET])
    assert (dependents.of(SECRET), dependents.of(SLICES)) == ((WEB,), (WEB,))
    assert dependents.reads_of(WEB) == {SECRET, SLICES}


def test_read_that_is_not_repeated_is_forgotten() -> None:
    dependents = Dependents()
    dependents.record(WEB, [SECRET, SLICES])
    dependents.record(WEB, [SLICES])
    assert (dependents.of(SECRET), dependents.of(SLICES)) == ((), (WEB,))


def test_owners_of_one_read_do_not_disturb_each_other() -> None:
    dependents = Dependents()
    dependents.record(WEB, [SECRET])
    dependents.record(API, [SECRET])
    dependents.record(WEB, [])
    assert dependents.of(SECRET) == (API,)
    assert dependents.reads_of(WEB) == frozenset()
    assert dependents.reads_of(API) == {SECRET}


def test_owners_without_reads_are_forgotten() -> None:
    dependents = Dependents()
    dependents.record(WEB, [SECRET, SLICES])
    dependents.record(WEB, [])
    dependents.record(API, [])
    assert dependents.of(SECRET) == ()
    assert not dependents._reads
    assert not dependents._owners


def test_a_read_is_reported_when_its_last_owner_is_deleted() -> None:
    unread: list[Read] = []
    dependents = Dependents(unread.append)
    dependents.record(WEB, [SECRET])
    dependents.record(API, [SECRET])
    dependents.record(WEB, [])
    assert unread == []
    dependents.record(API, [SLICES])
    assert unread == [SECRET]
