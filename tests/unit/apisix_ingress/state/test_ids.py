"""Ids of names whose CRC-32 is equal, and who hears of a change."""

import pytest

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.state.ids import IdTable, id_read
from tests.factories import COLLIDING

FIRST, SECOND, THIRD, _ = COLLIDING
READ = IndexKey("routes", "id", "849e9177")


def make_table() -> tuple[IdTable, list[IndexKey]]:
    heard: list[IndexKey] = []
    return IdTable(heard.append), heard


def test_read_of_an_id_is_the_kind_and_the_short_id() -> None:
    got = {id_read("routes", name) for name in COLLIDING}
    assert got == {READ}


def test_lone_name_has_its_short_id_before_and_while_it_is_in_use() -> None:
    table, heard = make_table()
    before = table.id_of("routes", SECOND)
    table.use("routes", SECOND)
    assert (before, table.id_of("routes", SECOND)) == (short_id(SECOND), short_id(SECOND))
    assert heard == []


@pytest.mark.parametrize("order", [(FIRST, SECOND, THIRD), (THIRD, SECOND, FIRST), (SECOND, THIRD, FIRST)])
def test_smallest_name_keeps_the_short_id_in_any_order_of_arrival(order: tuple[str, ...]) -> None:
    table, _ = make_table()
    for name in order:
        table.use("routes", name)
    want = [short_id(FIRST), wide_id(SECOND), wide_id(THIRD)]
    assert [table.id_of("routes", name) for name in (FIRST, SECOND, THIRD)] == want


def test_names_of_two_kinds_never_meet() -> None:
    table, heard = make_table()
    table.use("routes", FIRST)
    table.use("upstreams", SECOND)
    assert table.id_of("upstreams", SECOND) == short_id(SECOND)
    assert heard == []


def test_smaller_name_that_comes_later_is_told_of() -> None:
    table, heard = make_table()
    table.use("routes", SECOND)
    table.use("routes", FIRST)
    assert heard == [READ]


def test_larger_name_that_comes_later_with_its_wide_id_is_no_news() -> None:
    table, heard = make_table()
    table.use("routes", FIRST)
    assert table.id_of("routes", SECOND) == wide_id(SECOND)
    table.use("routes", SECOND)
    assert heard == []


def test_reader_of_a_name_hears_when_another_name_takes_its_short_id() -> None:
    """A route reads the id of its upstream before any upstream is in use."""
    table, heard = make_table()
    assert table.id_of("upstreams", SECOND) == short_id(SECOND)
    table.use("upstreams", FIRST)
    assert heard == [id_read("upstreams", SECOND)]
    assert table.id_of("upstreams", SECOND) == wide_id(SECOND)


def test_reader_of_a_name_hears_when_its_short_id_is_free_again() -> None:
    table, heard = make_table()
    table.use("upstreams", FIRST)
    assert table.id_of("upstreams", SECOND) == wide_id(SECOND)
    table.release("upstreams", FIRST)
    assert heard == [id_read("upstreams", SECOND)]


def test_reader_of_the_smaller_name_is_not_woken_by_the_larger_one() -> None:
    table, heard = make_table()
    assert table.id_of("routes", FIRST) == short_id(FIRST)
    table.use("routes", SECOND)
    assert heard == []


def test_next_name_inherits_the_short_id() -> None:
    table, heard = make_table()
    for name in (FIRST, SECOND, THIRD):
        table.use("routes", name)
    table.release("routes", FIRST)
    assert table.id_of("routes", SECOND) == short_id(SECOND)
    assert table.id_of("routes", THIRD) == wide_id(THIRD)
    assert heard == [READ]


def test_larger_name_leaves_in_silence() -> None:
    table, heard = make_table()
    table.use("routes", FIRST)
    table.use("routes", SECOND)
    table.release("routes", SECOND)
    assert heard == []
    assert table.id_of("routes", FIRST) == short_id(FIRST)


def test_name_with_two_users_keeps_its_id_until_both_are_gone() -> None:
    table, heard = make_table()
    for name in (FIRST, FIRST, SECOND):
        table.use("routes", name)
    table.release("routes", FIRST)
    assert (table.id_of("routes", SECOND), heard) == (wide_id(SECOND), [])
    table.release("routes", FIRST)
    assert (table.id_of("routes", SECOND), heard) == (short_id(SECOND), [READ])


def test_id_that_nobody_reads_any_more_wakes_nobody() -> None:
    table, heard = make_table()
    table.id_of("routes", SECOND)
    table.forget(READ)
    table.use("routes", FIRST)
    assert heard == []
