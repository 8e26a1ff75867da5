"""A gateway cluster as conditions see it: told how far each record is."""

from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.observer import APPLIED, RecordState
from apisix_ingress.model.keys import RecordKey


@dataclass
class FakeCluster:
    """A cluster where a record is applied unless told otherwise; keeps what it was asked for."""

    name: str = "default"
    states: dict[RecordKey, RecordState] = field(default_factory=dict)
    asked: list[RecordKey] = field(default_factory=list)
    taken_over: bool = True
    trouble: str = ""
    is_away: bool = False

    def record_state(self, key: RecordKey) -> RecordState:
        self.asked.append(key)
        return self.states.get(key, APPLIED)
