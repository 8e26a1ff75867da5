"""Interfaces of status writing: the desired status of objects, the load of the gateways, and an observer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey

Load = Literal["idle", "changes", "bulk"]
"""idle: no recent change of a record; changes: some; bulk: many records are queued for sync."""


class WantedStatus(Protocol):
    """Returns the desired status of objects."""

    def condition(self, key: ObjectKey) -> Condition | None:
        """Return the desired condition of an object; None leaves the current one unchanged."""

    def addresses(self, key: ObjectKey) -> Sequence[JsonObject] | None:
        """Return the desired `status.loadBalancer.ingress` of an Ingress; None leaves it unchanged."""

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        """Return the fields to write to the status of an object of the Gateway API; `now` is RFC 3339."""


class GatewayLoad(Protocol):
    """The load of the gateways."""

    @property
    def load(self) -> Load:
        """How much is being written to gateways at the moment."""


class Idle:
    """Gateways without any load."""

    load: Load = "idle"


class StatusObserver:
    """Receives results for metrics; this class ignores them. Called synchronously: return quickly and do not raise."""

    def status_written(self, kind: str, outcome: str) -> None:
        """Handle a write of the status of an object of a kind: `ok` or the name of the error."""

    def event_dropped(self) -> None:
        """Handle a dropped Event."""
