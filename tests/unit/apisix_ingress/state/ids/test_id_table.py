"""Ids of names with the same CRC-32, and notifications of changes."""

from collections.abc import Iterable
from itertools import permutations

import pytest

from apisix_ingress.model.keys import IndexKey, RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.ids.id_table import IdTable, id_read
from tests.factories import COLLIDING, make_claimant
from tests.forging import forge

FIRST, SECOND, THIRD, _ = COLLIDING
SLOT = RecordKey("routes", "849e9177")
OLD, MIDDLE, YOUNG = (make_claimant(name, created=f"2026-01-0{day}") for day, name in enumerate(("z", "y", "x"), 1))
UNBORN = Claimant("", OLD.owner)


class Table:
    """A table with its notifications, and gateways with scripted records."""

    def __init__(self, *, compatible: bool = True, settled: bool = False) -> None:
        self.heard: list[IndexKey] = []
        self.held: dict[RecordKey, tuple[str, ...]] = {}
        self.ids = IdTable(self.heard.append, compatible=compatible)
        self.ids.follow(lambda key: self.held.get(key, ()))
        if settled:
            self.ids.settle()

    def use(self, name: str, claimant: Claimant = OLD) -> None:
        self.ids.use("routes", name, claimant)

    def release(self, name: str, claimant: Claimant = OLD) -> None:
        self.ids.release("routes", name, claimant)

    def of(self, name: str) -> str:
        return self.ids.id_of("routes", name)

    def short(self, names: Iterable[str] = COLLIDING) -> list[str]:
        """Return which names have the short id."""
        return [name for name in names if self.of(name) == SLOT.id]

    @property
    def is_empty(self) -> bool:
        tables = ("_ids", "_asked", "_owners", "_holders", "_others")
        return not any(getattr(self.ids, name) for name in tables)


def test_names_that_share_a_short_id_have_separate_reads() -> None:
    assert {IdTable.slot("routes", name) for name in COLLIDING} == {SLOT}
    assert len({id_read("routes", name) for name in COLLIDING}) == len(COLLIDING)


@pytest.mark.parametrize("settled", [False, True])
def test_lone_name_has_its_short_id_before_and_while_it_is_in_use(settled: bool) -> None:
    table = Table(settled=settled)
    before = table.of(SECOND)
    table.use(SECOND)
    assert (before, table.of(SECOND), table.heard) == (SLOT.id, SLOT.id, [])


@pytest.mark.parametrize("order", list(permutations([(FIRST, YOUNG), (SECOND, OLD), (THIRD, MIDDLE)])))
def test_oldest_owner_has_the_short_id_in_any_order_of_arrival(order: tuple[tuple[str, Claimant], ...]) -> None:
    table = Table()
    for name, claimant in order:
        table.use(name, claimant)
    want = [wide_id(FIRST), short_id(SECOND), wide_id(THIRD)]
    assert [table.of(name) for name in (FIRST, SECOND, THIRD)] == want
    table.ids.settle()
    assert [table.of(name) for name in (FIRST, SECOND, THIRD)] == want


@pytest.mark.parametrize("order", list(permutations((FIRST, SECOND))))
def test_name_decides_only_between_names_of_one_owner(order: tuple[str, ...]) -> None:
    table = Table()
    for name in order:
        table.use(name)
    assert table.short() == [FIRST]


@pytest.mark.parametrize("order", list(permutations([(FIRST, UNBORN), (SECOND, YOUNG)])))
def test_owner_that_does_not_exist_yet_is_the_youngest(order: tuple[tuple[str, Claimant], ...]) -> None:
    table = Table()
    for name, claimant in order:
        table.use(name, claimant)
    assert table.short() == [SECOND]


def test_a_requested_name_yields_to_one_in_use_and_is_notified() -> None:
    """A route reads the id of its upstream before any upstream is in use."""
    table = Table()
    assert table.of(SECOND) == SLOT.id
    table.use(FIRST)
    assert table.heard == [id_read("routes", SECOND)]
    assert table.of(SECOND) == wide_id(SECOND)


def test_both_names_are_notified_when_an_older_name_takes_the_short_id() -> None:
    table = Table()
    table.use(FIRST, YOUNG)
    table.use(SECOND, OLD)
    assert set(table.heard) == {id_read("routes", FIRST), id_read("routes", SECOND)}


def test_a_younger_name_added_later_changes_nothing() -> None:
    table = Table()
    table.use(FIRST)
    assert table.of(SECOND) == wide_id(SECOND)
    table.use(SECOND, YOUNG)
    assert table.heard == []


def test_names_of_two_kinds_never_collide() -> None:
    table = Table()
    table.use(FIRST)
    assert table.ids.id_of("upstreams", SECOND) == short_id(SECOND)


def test_oldest_of_the_rest_gets_the_short_id_until_the_table_is_settled() -> None:
    table = Table()
    for name, claimant in ((FIRST, OLD), (SECOND, YOUNG), (THIRD, MIDDLE)):
        table.use(name, claimant)
    table.release(FIRST, OLD)
    assert table.short((SECOND, THIRD)) == [THIRD]


def test_an_owner_that_becomes_younger_is_treated_as_younger() -> None:
    table = Table()
    table.use(FIRST, OLD)
    table.use(SECOND, MIDDLE)
    table.use(FIRST, YOUNG)
    table.release(FIRST, OLD)
    assert table.short() == [SECOND]


def test_all_readers_expect_the_short_id_once_it_is_unused() -> None:
    table = Table()
    table.use(FIRST)
    assert table.of(SECOND) == wide_id(SECOND)
    table.release(FIRST)
    assert table.heard == [id_read("routes", SECOND)]
    assert table.of(SECOND) == SLOT.id


def test_one_of_the_unused_names_has_the_short_id_of_a_settled_table() -> None:
    table = Table()
    assert table.short((SECOND, FIRST)) == [SECOND, FIRST]
    table.ids.settle()
    assert (table.short(), table.heard) == ([FIRST], [id_read("routes", SECOND)])


def test_a_name_keeps_its_id_when_an_older_owner_appears_later() -> None:
    table = Table(settled=True)
    table.use(SECOND, YOUNG)
    table.use(FIRST, OLD)
    assert (table.short(), table.heard) == ([SECOND], [])


def test_name_keeps_its_wide_id_when_the_short_one_becomes_free() -> None:
    table = Table(settled=True)
    table.use(FIRST)
    table.use(SECOND, YOUNG)
    table.release(FIRST)
    assert (table.of(SECOND), table.heard) == (wide_id(SECOND), [])


def test_the_first_requested_name_keeps_the_short_id_of_a_settled_table() -> None:
    table = Table(settled=True)
    assert table.of(SECOND) == SLOT.id
    table.use(FIRST)
    assert (table.short(), table.heard) == ([SECOND], [])


def test_a_name_with_two_owners_stays_until_both_are_deleted() -> None:
    table = Table(settled=True)
    for claimant in (OLD, OLD, YOUNG):
        table.use(FIRST, claimant)
    for claimant in (OLD, YOUNG):
        table.release(FIRST, claimant)
        assert table.ids.known_id("routes", FIRST) == SLOT.id
    table.release(FIRST, OLD)
    assert (table.ids.known_id("routes", FIRST), table.is_empty) == ("", True)


@pytest.mark.parametrize("settled", [False, True])
def test_an_unread_and_unused_name_is_forgotten(settled: bool) -> None:
    table = Table(settled=settled)
    table.use(FIRST)
    for name in (SECOND, THIRD, FIRST):
        table.of(name)
        table.ids.forget(id_read("routes", name))
    assert table.ids.names(SLOT) == (FIRST,)
    table.release(FIRST)
    table.of(SECOND)
    table.ids.forget(id_read("routes", SECOND))
    assert table.is_empty


def test_a_free_short_id_is_given_to_a_new_name() -> None:
    table = Table(settled=True)
    table.use(FIRST)
    table.release(FIRST)
    assert table.of(SECOND) == SLOT.id


@pytest.mark.parametrize("compatible", [True, False])
def test_short_id_that_a_gateway_holds_for_another_name_is_not_free(compatible: bool) -> None:
    table = Table(settled=True, compatible=compatible)
    table.held[SLOT] = (FIRST,)
    assert (table.of(SECOND), table.of(FIRST)) == (wide_id(SECOND), SLOT.id)


def test_a_short_id_held_for_an_unknown_name_is_not_free() -> None:
    table = Table(settled=True)
    table.held[SLOT] = ("",)
    assert table.of(FIRST) == wide_id(FIRST)


def test_a_restored_name_has_the_wide_id_held_in_a_gateway() -> None:
    table = Table(settled=True)
    table.held[RecordKey("routes", wide_id(FIRST))] = (FIRST,)
    assert table.of(FIRST) == wide_id(FIRST)


def test_new_names_have_wide_ids_where_nothing_has_to_be_compatible() -> None:
    table = Table(compatible=False)
    table.use(FIRST)
    assert (table.of(FIRST), table.of(SECOND)) == (wide_id(FIRST), wide_id(SECOND))
    table.ids.settle()
    assert (table.of(FIRST), table.of(THIRD), table.heard) == (wide_id(FIRST), wide_id(THIRD), [])


def test_thousands_of_names_with_one_crc_cost_no_more_than_others() -> None:
    table = Table()
    for number in range(5000, 0, -1):
        claimant = make_claimant(f"o{number:04}")
        table.ids.use("routes", forge(FIRST, "x_", number=number), claimant)
    assert len(table.heard) == 2 * 4999
    table.ids.settle()
    table.use(FIRST)
    assert table.of(FIRST) == wide_id(FIRST)
