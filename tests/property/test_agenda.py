"""The agenda against a model that looks at every write: a delete is due when no older write of its scopes is left."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
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

    turn: int
    namespace: str
    hosts: tuple[str, ...]


def make_route(key: RecordKey, hosts: tuple[str, ...]) -> Record:
    return make_record(key, hosts=list(hosts))


def overlap(old: str, new: str) -> bool:
    """Say whether a request for a host may be answered by a route for the other one, as far as it is looked at."""
    return old == new or (new[:1] == "*" and old.endswith(new[1:]))


def may_take_over(new: Marked, old: Marked) -> bool:
    if new.namespace == old.namespace or not new.hosts or not old.hosts or any("*" in host for host in old.hosts):
        return True
    return any(overlap(one, other) for one in old.hosts for other in new.hosts)


class AgendaMachine(RuleBasedStateMachine):
    """Writes fly, land, fail, are parked and are marked again; deletes are tried, and go when they are due."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = WriteOrder()
        self.turn = 0
        self.writes: dict[RecordKey, Marked] = {}
        self.flying: set[RecordKey] = set()
        self.again: dict[RecordKey, Marked] = {}
        self.parked: dict[RecordKey, Marked] = {}
        self.deletes: dict[RecordKey, Marked] = {}
        self.told: set[RecordKey] = set()
        """Deletes that were found not to be due; the agenda has to say when they may be."""

    def blockers(self, key: RecordKey) -> list[RecordKey]:
        delete = self.deletes[key]
        return [
            write
            for write, marked in self.writes.items()
            if marked.turn <= delete.turn and may_take_over(marked, delete)
        ]

    @rule()
    def next_turn(self) -> None:
        self.turn += 1
        self.agenda.turn()

    @rule(key=WRITES, namespace=NAMESPACES, hosts=HOSTS)
    def mark_write(self, key: RecordKey, namespace: str, hosts: tuple[str, ...]) -> None:
        flying = key in self.flying
        self.agenda.mark_write(key, make_route(key, hosts), namespace, flying=flying)
        parked = self.parked.pop(key, None)
        if flying:
            self.again[key] = Marked(self.again[key].turn if key in self.again else self.turn, namespace, hosts)
        else:
            before = self.writes.get(key) or parked
            self.writes[key] = Marked(before.turn if before else self.turn, namespace, hosts)

    @rule(key=DELETES, namespace=NAMESPACES, hosts=HOSTS)
    def mark_delete(self, key: RecordKey, namespace: str, hosts: tuple[str, ...]) -> None:
        self.agenda.mark_delete(key, Former(namespace, {key: make_route(key, hosts)}), flying=False)
        self.deletes.setdefault(key, Marked(self.turn, namespace, hosts))

    @rule(key=WRITES)
    def take_off(self, key: RecordKey) -> None:
        if key in self.writes and key not in self.flying:
            self.agenda.begin(key)
            self.flying.add(key)

    @rule(key=WRITES)
    def land(self, key: RecordKey) -> None:
        if key in self.flying:
            self.agenda.settle(key)
            self.flying.discard(key)
            self.writes.pop(key, None)
            if key in self.again:
                self.writes[key] = self.again.pop(key)

    @rule(key=WRITES)
    def fail(self, key: RecordKey) -> None:
        """It stays outstanding, and is tried as it is wanted by then."""
        if key in self.flying:
            self.flying.discard(key)
            self.agenda.begin(key)
            again = self.again.pop(key, None)
            if again is not None and key in self.writes:
                self.writes[key] = replace(again, turn=self.writes[key].turn)

    @rule(key=WRITES)
    def give_up(self, key: RecordKey) -> None:
        self.agenda.give_up(key)
        self.writes.pop(key, None)
        if key in self.flying:
            self.flying.discard(key)
            self.agenda.begin(key)
            self.again.pop(key, None)

    @rule(key=WRITES, on=DELETES)
    def park(self, key: RecordKey, on: RecordKey) -> None:
        if key in self.writes and key not in self.flying:
            self.agenda.park(key, on, delete=False)
            self.parked[key] = self.writes.pop(key)

    @rule(on=DELETES)
    def wake(self, on: RecordKey) -> None:
        for key in self.agenda.woken(on):
            self.writes[key] = self.parked.pop(key)

    @rule(key=DELETES)
    def try_delete(self, key: RecordKey) -> None:
        if key not in self.deletes:
            return
        want = not self.blockers(key)
        assert self.agenda.may_delete(key) is want
        if want:
            self.agenda.settle(key)
            del self.deletes[key]
            self.told.discard(key)
        else:
            self.told.add(key)

    @invariant()
    def says_when_a_delete_is_due(self) -> None:
        self.told.difference_update(self.agenda.due())
        for key in self.told:
            assert self.blockers(key), f"{key} waits for nothing"
        assert self.agenda.is_clear == (not self.told)
        assert self.agenda.size == len(self.writes)

    def teardown(self) -> None:
        for key in list(self.writes):
            self.agenda.give_up(key)
        self.agenda.due()
        assert self.agenda._blockers is None, "what nothing is in takes memory"


TestAgendaMachine = AgendaMachine.TestCase
TestAgendaMachine.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
