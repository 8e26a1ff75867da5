"""The log of status writes that the API server rejects: one line for each problem, however many objects have it."""

from __future__ import annotations

import structlog

from apisix_ingress.errors import KubeError, KubeForbidden
from apisix_ingress.model.keys import ObjectKey

log = structlog.get_logger()


class RefusalLog:
    """Logs each kind of rejection once for each kind of object, until a write of that object succeeds."""

    def __init__(self) -> None:
        self._logged: dict[str, ObjectKey] = {}

    def log(self, key: ObjectKey, plural: str, error: KubeError) -> None:
        """Log a rejection unless it was logged already; `plural` is that of the object's kind."""
        refusal = f"{key.kind} {type(error).__name__}"
        if refusal in self._logged:
            return
        self._logged[refusal] = key
        remedy = f"grant patch on {plural}/status" if isinstance(error, KubeForbidden) else ""
        log.warning("status.rejected", object=str(key), problem=str(error), remedy=remedy)

    def settle(self, key: ObjectKey) -> None:
        """Note that an object has no problem any more."""
        self._logged = {text: other for text, other in self._logged.items() if other != key}
