"""What Events say of conditions (texts: v1-behaviour.md §7). How Events are written is known to `events`."""

from __future__ import annotations

from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.model.condition import SYNCED, Condition
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Meta

SYNCED_EVENT = "ApisixIngress synced successfully"
FAILED_EVENT = "ApisixIngress synced failed, with error: "


class ConditionEvents:
    """Records Events for changed conditions.

    Args:
        recorder: Gets them; None: nobody is told.
        began: When this process began, as the API server writes times.
    """

    def __init__(self, recorder: EventRecorder | None, *, began: str) -> None:
        self._recorder = recorder
        self._began = began
        self._announced: dict[ObjectKey, tuple[str, str]] = {}

    def announce(self, meta: Meta, condition: Condition) -> None:
        """Record an Event for a changed condition."""
        if self._recorder is not None:
            good = condition.reason == SYNCED
            message = SYNCED_EVENT if good else f"{FAILED_EVENT}{condition.message}"
            self._recorder.record(meta, "Normal" if good else "Warning", condition.reason, message)

    def announce_once(self, meta: Meta, condition: Condition) -> None:
        """Record an Event unless it is the last one, or old news: success of an object older than this process."""
        news = (condition.reason, condition.message)
        before = self._announced.get(meta.key)
        self._announced[meta.key] = news
        old = before is None and condition.reason == SYNCED and meta.created < self._began
        if before != news and not old:
            self.announce(meta, condition)

    def forget(self, key: ObjectKey) -> None:
        """Forget an object that is gone."""
        self._announced.pop(key, None)
