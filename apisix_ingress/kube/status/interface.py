"""What status writing is given: the status that objects should have, how busy the gateways are, and an observer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey

Load = Literal["idle", "changes", "bulk"]
"""idle: no record has changed for a moment; changes: some have; bulk: many records are queued for sync."""


class WantedStatus(Protocol):
    """What the status of objects should say."""

    def condition(self, key: ObjectKey) -> Condition | None:
        """Return the condition that an object should have; None: leave it alone."""

    def addresses(self, key: ObjectKey) -> Sequence[JsonObject] | None:
        """Return `status.loadBalancer.ingress` that an Ingress should have; None: leave it alone."""

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        """Return the fields to write to the status of an object of the Gateway API; `now` is RFC 3339."""


class GatewayLoad(Protocol):
    """How busy the gateways are kept."""

    @property
    def load(self) -> Load:
        """How much is being written to gateways now."""


class Idle:
    """Gateways that nothing is written to."""

    load: Load = "idle"


class StatusObserver:
    """What a metric may want to know; this one does nothing. Called synchronously: be quick and do not raise."""

    def status_written(self, kind: str, outcome: str) -> None:
        """Note a write of the status of an object of a kind: `ok` or the name of the error."""

    def event_dropped(self) -> None:
        """Note an Event that is not sent."""
