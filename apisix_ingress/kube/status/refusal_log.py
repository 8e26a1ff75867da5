"""Refusals of status writes, as they are logged: once for each kind of object and of refusal, until one succeeds."""

from __future__ import annotations

import structlog

from apisix_ingress.errors import KubeError, KubeForbidden
from apisix_ingress.model.keys import ObjectKey

log = structlog.get_logger()


class RefusalLog:
    """What was complained of, with the object it came up with: its success, or its end, lets it be told again."""

    def __init__(self) -> None:
        self._told: dict[str, ObjectKey] = {}

    def tell(self, key: ObjectKey, plural: str, error: KubeError) -> None:
        """Log a refusal, unless it was already; `plural` is that of the object's kind."""
        complaint = f"{key.kind} {type(error).__name__}"
        if complaint in self._told:
            return
        self._told[complaint] = key
        remedy = f"grant patch on {plural}/status" if isinstance(error, KubeForbidden) else ""
        log.warning("status.refused", object=str(key), problem=str(error), remedy=remedy)

    def settle(self, key: ObjectKey) -> None:
        """Note that nothing is wrong with an object any more."""
        self._told = {text: other for text, other in self._told.items() if other != key}
