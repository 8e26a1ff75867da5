"""Which deletes wait for which writes, by the batch in which they were ordered."""

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.records.slot import Flight, RecordSlot, Write
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UNKNOWN, Former, Record
from tests.fakes.gateway import make_record

KEY = RecordKey("routes", "r1")
OLD = RecordKey("routes", "old")
OTHER = RecordKey("routes", "other")
THIRD = RecordKey("routes", "third")
UPSTREAM = RecordKey("upstreams", "u1")
FLIGHT = Flight(None, 0.0)


class Orders:
    """An order of writes, and the slots of the records."""

    def __init__(self, *writes: RecordKey) -> None:
        self.order = WriteOrder()
        self.slots = {key: RecordSlot(key) for key in (KEY, OLD, OTHER, THIRD, UPSTREAM)}
        self.batch()
        for key in writes:
            self.write(key)

    def batch(self) -> None:
        self.order.begin_batch()

    def write(self, key: RecordKey, record: Record | None = None, namespace: str = "") -> None:
        self.order.order(self.slots[key], record or make_record(key), namespace)

    def write_in_flight(self, key: RecordKey, record: Record | None = None, namespace: str = "") -> None:
        self.slots[key].flight = FLIGHT
        self.write(key, record, namespace)

    def delete(self, key: RecordKey, former: Former = UNKNOWN) -> None:
        self.order.order(self.slots[key], None, "", former)

    def end(self, key: RecordKey) -> None:
        """Complete a write successfully, or settle a record without one."""
        self.slots[key].flight = None
        if self.slots[key].next_order is not None:
            self.order.take_next(self.slots[key], in_place=False)
        else:
            self.order.drop(self.slots[key])

    def fail(self, key: RecordKey) -> None:
        """Complete a write without success: a write ordered meanwhile replaces it."""
        self.slots[key].flight = None
        self.order.take_next(self.slots[key], in_place=True)

    def give_up(self, key: RecordKey) -> None:
        self.order.stop_counting(self.slots[key])

    def wait(self, key: RecordKey) -> None:
        self.order.wait(self.slots[key], make_record(key), "")

    def resume(self, key: RecordKey) -> None:
        self.order.resume(self.slots[key])

    def may_delete(self, key: RecordKey) -> bool:
        return self.order.may_delete(self.slots[key])


def test_delete_waits_for_writes_of_its_batch_but_not_for_later_ones() -> None:
    orders = Orders(KEY)
    orders.delete(OLD)
    orders.batch()
    orders.write(UPSTREAM)
    assert not orders.may_delete(OLD)
    assert not orders.may_delete(OLD)
    assert orders.order.due() == []
    orders.end(KEY)
    assert orders.order.due() == [OLD]
    assert orders.may_delete(OLD)
    assert orders.order.is_clear


def test_delete_waits_for_the_version_that_was_ordered_in_flight() -> None:
    orders = Orders(KEY)
    orders.batch()
    orders.write_in_flight(KEY)
    orders.delete(OLD)
    orders.end(KEY)
    assert not orders.may_delete(OLD)
    orders.end(KEY)
    assert orders.order.due() == [OLD]


def test_write_that_turned_into_a_delete_blocks_no_delete() -> None:
    orders = Orders(KEY)
    orders.slots[KEY].flight = FLIGHT
    orders.delete(KEY)
    orders.fail(KEY)
    assert orders.may_delete(KEY)
    assert orders.may_delete(OLD)


def test_unblocked_write_has_its_old_place() -> None:
    orders = Orders(KEY)
    orders.wait(KEY)
    orders.batch()
    orders.delete(OLD)
    assert not orders.order.is_counted(KEY)
    orders.batch()
    orders.resume(KEY)
    assert not orders.may_delete(OLD)


def test_ordering_a_blocked_write_keeps_its_place() -> None:
    orders = Orders(KEY)
    orders.delete(OLD)
    orders.wait(KEY)
    orders.batch()
    orders.write(KEY)
    assert not orders.may_delete(OLD)


def test_blocking_twice_keeps_the_place() -> None:
    orders = Orders(KEY)
    orders.delete(OLD)
    orders.wait(KEY)
    orders.batch()
    orders.wait(KEY)
    orders.resume(KEY)
    assert not orders.may_delete(OLD)


def test_write_that_was_given_up_and_is_blocked_is_waited_for_again_from_then_on() -> None:
    orders = Orders(KEY)
    orders.give_up(KEY)
    orders.batch()
    orders.wait(KEY)
    orders.resume(KEY)
    assert orders.slots[KEY].order == Write(2, make_record(KEY), "")


def test_failing_write_is_no_longer_waited_for_once_given_up() -> None:
    orders = Orders(KEY)
    orders.delete(OLD)
    assert not orders.may_delete(OLD)
    orders.give_up(KEY)
    assert orders.order.due() == [OLD]


def test_batches_of_settled_writes_take_no_memory() -> None:
    orders = Orders(UPSTREAM)
    order = orders.order
    orders.delete(OLD)
    assert not orders.may_delete(OLD)
    for _ in range(1000):
        orders.batch()
        orders.write(KEY)
        orders.end(KEY)
        assert order.due() == []
    assert order._blockers is not None
    assert max(len(members.heap) for members in order._blockers._scopes.values()) < 100
    orders.end(UPSTREAM)
    assert order.due() == [OLD]
    assert order._blockers is None


def route(*hosts: str) -> Record:
    return make_record(KEY, hosts=list(hosts))


def former(*hosts: str, namespace: str = "") -> Former:
    return Former(namespace, {key: make_record(key, hosts=list(hosts)) for key in (OLD, OTHER, KEY)})


def test_delete_waits_for_writes_that_could_take_over_and_for_no_others() -> None:
    orders = Orders()
    orders.write(KEY, route("a", "b"), "one")
    orders.write(UPSTREAM)
    orders.delete(OLD, former("b"))
    orders.delete(OTHER, former("b", namespace="two"))
    orders.delete(THIRD, Former("two", {THIRD: route("c")}))
    assert [orders.may_delete(key) for key in (OLD, OTHER, THIRD)] == [False, False, True]
    orders.end(KEY)
    assert orders.order.due() == [OTHER]
    assert orders.may_delete(OTHER)
    orders.end(UPSTREAM)
    assert orders.order.due() == [OLD]
    assert orders.may_delete(OLD)


def test_write_that_changes_its_hosts_keeps_its_batch_and_frees_who_waited_for_the_old_ones() -> None:
    orders = Orders()
    orders.write(KEY, route("a"), "one")
    orders.delete(OLD, former("a"))
    orders.delete(OTHER, former("b"))
    assert not orders.may_delete(OLD)
    orders.batch()
    orders.write(KEY, route("b"), "one")
    assert orders.order.due() == [OLD]
    assert (orders.may_delete(OLD), orders.may_delete(OTHER)) == (True, False)


def test_a_write_ordered_in_flight_has_its_new_hosts_once_the_first_one_failed() -> None:
    orders = Orders()
    orders.write(KEY, route("a"), "one")
    orders.delete(OLD, former("b"))
    orders.batch()
    orders.write_in_flight(KEY, route("b"), "one")
    orders.fail(KEY)
    assert not orders.may_delete(OLD)


def test_delete_that_was_ordered_in_flight_is_known_until_it_is_done() -> None:
    orders = Orders(KEY)
    orders.slots[KEY].flight = FLIGHT
    orders.delete(KEY, former("a", namespace="team"))
    orders.end(KEY)
    orders.batch()
    orders.write(OLD)
    assert (orders.slots[KEY].namespace, orders.may_delete(KEY)) == ("team", True)
    orders.end(KEY)
    assert orders.slots[KEY].namespace == ""
