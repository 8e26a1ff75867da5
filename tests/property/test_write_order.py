"""The order of writes compared with a model: a delete is due when it waits for no more writes."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.records.slot import Flight, RecordSlot
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Former, Record
from tests.fakes.gateway import make_record

WRITES = st.sampled_from([RecordKey("routes", f"w{number}") for number in range(5)])
DELETES = st.sampled_from([RecordKey("routes", f"d{number}") for number in range(4)])
HOSTS = st.lists(st.sampled_from(["a.test", "b.test", "*.test", "c.b.test"]), unique=True, max_size=3).map(tuple)
NAMESPACES = st.sampled_from(["one", "two", "three"])


@dataclass
class Marked:
    """A write or a delete of the model."""

    batch: int
    namespace: str
    hosts: tuple[str, ...]


def make_route(key: RecordKey, hosts: tuple[str, ...]) -> Record:
    return make_record(key, hosts=list(hosts))


def overlap(old: str, new: str) -> bool:
    """Return whether a route for one host may match requests for the other one, as far as the order checks it."""
    return old == new or (new[:1] == "*" and old.endswith(new[1:]))


def may_take_over(new: Marked, old: Marked) -> bool:
    if new.namespace == old.namespace or not new.hosts or not old.hosts or any("*" in host for host in old.hosts):
        return True
    return any(overlap(one, other) for one in old.hosts for other in new.hosts)


class WriteOrderMachine(RuleBasedStateMachine):
    """Writes are sent, succeed, fail, are blocked and ordered again; deletes are tried, and sent when they are due."""

    def __init__(self) -> None:
        super().__init__()
        self.order = WriteOrder()
        self.slots: dict[RecordKey, RecordSlot] = {}
        self.batch = 0
        self.writes: dict[RecordKey, Marked] = {}
        self.in_flight: set[RecordKey] = set()
        self.next: dict[RecordKey, Marked] = {}
        self.blocked: dict[RecordKey, Marked] = {}
        self.deletes: dict[RecordKey, Marked] = {}
        self.deferred: set[RecordKey] = set()
        """Deletes that were not due; the order must report when they are."""

    def slot(self, key: RecordKey) -> RecordSlot:
        return self.slots.setdefault(key, RecordSlot(key))

    def blockers(self, key: RecordKey) -> list[RecordKey]:
        delete = self.deletes[key]
        return [
            write
            for write, marked in self.writes.items()
            if marked.batch <= delete.batch and may_take_over(marked, delete)
        ]

    @rule()
    def next_batch(self) -> None:
        self.batch += 1
        self.order.begin_batch()

    @rule(key=WRITES, namespace=NAMESPACES, hosts=HOSTS)
    def order_write(self, key: RecordKey, namespace: str, hosts: tuple[str, ...]) -> None:
        record = make_route(key, hosts)
        self.order.order(self.slot(key), record, namespace)
        if key in self.in_flight:
            self.next[key] = Marked(self.next[key].batch if key in self.next else self.batch, namespace, hosts)
        else:
            before = self.writes.get(key) or self.blocked.pop(key, None)
            self.writes[key] = Marked(before.batch if before else self.batch, namespace, hosts)

    @rule(key=DELETES, namespace=NAMESPACES, hosts=HOSTS)
    def order_delete(self, key: RecordKey, namespace: str, hosts: tuple[str, ...]) -> None:
        self.order.order(self.slot(key), None, namespace, Former(namespace, {key: make_route(key, hosts)}))
        self.deletes.setdefault(key, Marked(self.batch, namespace, hosts))

    @rule(key=WRITES)
    def start(self, key: RecordKey) -> None:
        if key in self.writes and key not in self.in_flight:
            self.in_flight.add(key)
            self.slot(key).flight = Flight(None, 0.0)

    @rule(key=WRITES)
    def succeed(self, key: RecordKey) -> None:
        if key not in self.in_flight:
            return
        self.in_flight.discard(key)
        self.slot(key).flight = None
        self.writes.pop(key, None)
        if key in self.next:
            self.order.take_next(self.slot(key), in_place=False)
            self.writes[key] = self.next.pop(key)
        else:
            self.order.drop(self.slot(key))

    @rule(key=WRITES)
    def fail(self, key: RecordKey) -> None:
        """It stays outstanding, and is retried with the desired version of that time."""
        if key not in self.in_flight:
            return
        self.in_flight.discard(key)
        self.slot(key).flight = None
        if key in self.next:
            self.order.take_next(self.slot(key), in_place=True)
            self.writes[key] = replace(self.next.pop(key), batch=self.writes[key].batch)

    @rule(key=WRITES)
    def give_up(self, key: RecordKey) -> None:
        if key not in self.in_flight:
            self.order.stop_counting(self.slot(key))
            self.writes.pop(key, None)
            self.blocked.pop(key, None)

    @rule(key=WRITES)
    def block(self, key: RecordKey) -> None:
        if key in self.writes and key not in self.in_flight:
            self.order.wait(self.slot(key), make_route(key, ()), "")
            self.blocked[key] = self.writes.pop(key)

    @rule(key=WRITES)
    def unblock(self, key: RecordKey) -> None:
        if key in self.blocked:
            self.order.resume(self.slot(key))
            self.writes[key] = self.blocked.pop(key)

    @rule(key=DELETES)
    def try_delete(self, key: RecordKey) -> None:
        if key not in self.deletes:
            return
        want = not self.blockers(key)
        assert self.order.may_delete(self.slot(key)) is want
        if want:
            self.order.drop(self.slot(key))
            del self.deletes[key]
            self.deferred.discard(key)
        else:
            self.deferred.add(key)

    @invariant()
    def says_when_a_delete_is_due(self) -> None:
        self.deferred.difference_update(self.order.due())
        for key in self.deferred:
            assert self.blockers(key), f"{key} waits for nothing"
        assert self.order.is_clear == (not self.deferred)
        assert {key for key in self.slots if self.order.is_counted(key)} == set(self.writes)

    def teardown(self) -> None:
        for key in list(self.writes):
            self.order.drop(self.slot(key))
        self.order.due()
        assert self.order._blockers is None, "empty entries take memory"


TestWriteOrderMachine = WriteOrderMachine.TestCase
TestWriteOrderMachine.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
