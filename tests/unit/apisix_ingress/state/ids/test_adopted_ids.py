"""Ids follow what gateways hold."""

from collections.abc import Mapping

import pytest

from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.names import NAME_LIMIT, truncated, wide_id
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.ids.adopted_ids import AdoptedIds
from apisix_ingress.state.ids.id_table import IdTable
from tests.factories import COLLIDING, make_claimant
from tests.forging import forge

FIRST, SECOND, THIRD, _ = COLLIDING
OLD, YOUNG = make_claimant("old", created="2026-01-01"), make_claimant("young", created="2026-02-01")
SHORT = "849e9177"


class Gateways:
    """A settled table with names in use, and the records of clusters in a term."""

    def __init__(
        self, names: Mapping[str, Claimant], *, kind: RecordKind = "upstreams", compatible: bool = True
    ) -> None:
        self.kind = kind
        self.ids = IdTable(lambda read: None, compatible=compatible)
        for name, claimant in names.items():
            self.ids.use(kind, name, claimant)
        self.ids.settle()
        self.written: dict[RecordKey, tuple[str, ...]] = {}
        self.proven: set[RecordKey] = set()
        self.fitting: set[str] = set()

    def say(self, *held: str | tuple[str, str]) -> None:
        """Adopt a cluster with records under these ids, by id and name, or of a kind without names."""
        pairs = [(each, "") if isinstance(each, str) else each for each in held]
        adoption = AdoptedIds(
            self.ids,
            {RecordKey(self.kind, id_): name for id_, name in pairs},
            written=lambda key: self.written.get(key, ()),
            proven=self.proven,
            fits=lambda key, name: name in self.fitting,
        )
        for _ in adoption.steps():
            pass

    def short(self, *names: str) -> list[str]:
        return [name for name in names or COLLIDING if self.ids.known_id(self.kind, name) == SHORT]


def test_name_keeps_the_short_id_that_a_gateway_has_for_it_although_it_is_younger() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    found.say((SHORT, SECOND), (wide_id(FIRST), FIRST))
    assert (found.short(), found.ids.known_id("upstreams", FIRST)) == ([SECOND], wide_id(FIRST))


def test_a_name_keeps_its_wide_id_without_any_rival() -> None:
    found = Gateways({FIRST: OLD})
    found.say((wide_id(FIRST), FIRST))
    assert found.short() == []


def test_of_both_ids_in_a_gateway_a_name_keeps_the_short_one() -> None:
    for held in (((SHORT, FIRST), (wide_id(FIRST), FIRST)), ((wide_id(FIRST), FIRST), (SHORT, FIRST))):
        found = Gateways({FIRST: OLD})
        found.say(*held)
        assert found.short() == [FIRST]


def test_a_short_id_held_for_a_name_without_object_is_not_assigned() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    found.say((SHORT, THIRD))
    assert found.short() == []


def test_empty_gateway_changes_nothing() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    found.say()
    assert (found.short(), found.ids.changes) == ([FIRST], 0)


def test_short_ids_of_a_gateway_stay_where_new_names_have_wide_ones() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG, "lone": OLD}, compatible=False)
    found.say((SHORT, SECOND), (IdTable.slot("upstreams", "lone").id, "lone"))
    assert found.short() == [SECOND]
    assert found.ids.known_id("upstreams", "lone") == IdTable.slot("upstreams", "lone").id


@pytest.mark.parametrize("limit", [NAME_LIMIT, NAME_LIMIT + 60])
def test_long_names_are_recognized_by_their_shortened_form(limit: int) -> None:
    name = "victim_" + "x" * limit
    forged = forge(name, "evil_" + "x" * limit)
    slot = IdTable.slot("upstreams", name)
    found = Gateways({forged: OLD, name: YOUNG})
    found.say((slot.id, truncated(name)), (wide_id(forged), truncated(forged)))
    assert found.ids.holder(slot) == name
    alone = Gateways({name: OLD})
    alone.say((wide_id(name), truncated(name)))
    assert alone.ids.holder(slot) is None


def test_a_manually_edited_name_is_ignored() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    found.say((SHORT, "edited"))
    assert found.short() == [FIRST]


# Kinds whose records contain no name.


def test_a_name_with_a_wide_id_in_the_gateway_does_not_own_the_short_one() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG}, kind="ssls")
    found.say(SHORT, wide_id(FIRST))
    assert found.short() == [SECOND]


def test_a_record_belongs_to_the_name_whose_object_desires_it() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG}, kind="ssls")
    found.fitting = {SECOND}
    found.say(SHORT)
    assert found.short() == [SECOND]


def test_if_nothing_distinguishes_names_the_older_one_has_the_short_id() -> None:
    found = Gateways({FIRST: YOUNG, SECOND: OLD}, kind="ssls")
    found.say(SHORT)
    assert found.short() == [SECOND]


def test_a_record_of_an_unknown_owner_changes_nothing() -> None:
    found = Gateways({"lone": OLD}, kind="ssls")
    found.say(SHORT, wide_id(FIRST))
    assert found.ids.known("ssls") == ("lone",)


# Several clusters.


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_older_owner_has_the_short_id_where_clusters_disagree(order: tuple[str, str]) -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    for name in order:
        found.say((SHORT, name))
    assert found.short() == [FIRST]


def test_a_cluster_being_written_to_outranks_one_that_returns() -> None:
    found = Gateways({FIRST: OLD, SECOND: YOUNG})
    found.say((SHORT, SECOND))
    found.written[RecordKey("upstreams", SHORT)] = (SECOND,)
    found.say((SHORT, FIRST))
    assert found.short() == [SECOND]


def test_a_short_id_in_one_cluster_outranks_a_wide_id_in_another() -> None:
    for order in ((SHORT, wide_id(FIRST)), (wide_id(FIRST), SHORT)):
        found = Gateways({FIRST: OLD}, compatible=False)
        for id_ in order:
            found.say((id_, FIRST))
        assert found.short() == [FIRST]


def test_wide_id_that_is_written_already_stays() -> None:
    found = Gateways({FIRST: OLD}, compatible=False)
    found.written[RecordKey("upstreams", wide_id(FIRST))] = (FIRST,)
    found.say((SHORT, FIRST))
    assert found.short() == []


def test_short_id_that_is_written_already_stays() -> None:
    found = Gateways({FIRST: OLD})
    found.written[RecordKey("upstreams", SHORT)] = (FIRST,)
    found.say((wide_id(FIRST), FIRST))
    assert found.short() == [FIRST]
