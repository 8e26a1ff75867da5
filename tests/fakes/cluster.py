"""A gateway cluster for conditions, with scripted states of records."""

from dataclasses import dataclass, field

from apisix_ingress.gateway.sync.observer import APPLIED, RecordState
from apisix_ingress.model.keys import RecordKey


@dataclass
class FakeCluster:
    """A cluster in which records are applied by default; it keeps the requested keys."""

    name: str = "default"
    states: dict[RecordKey, RecordState] = field(default_factory=dict)
    asked: list[RecordKey] = field(default_factory=list)
    taken_over: bool = True
    trouble: str = ""
    is_away: bool = False

    def record_state(self, key: RecordKey) -> RecordState:
        self.asked.append(key)
        return self.states.get(key, APPLIED)
