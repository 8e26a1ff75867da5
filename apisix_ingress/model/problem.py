"""Problems: a user's mistake as data, with the object it was found in, the field and the remedy."""

from __future__ import annotations

from dataclasses import dataclass, field

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.states import Severity


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake.

    Attributes:
        code: A constant CamelCase word, e.g. `ServiceNotFound`; the reason of an Event.
        message: A sentence that names the cause and the remedy. Never holds Secret data.
        path: The field, e.g. `spec.http[0].backends[1].servicePort`; empty for the object as a whole.
        severity: The consequence of the mistake. error: nothing new is published for the object. degraded: it is
            published, and its condition is False. warning: it is published and its condition is True; `translate`,
            `lint` and an Event show the problem.
        origin: The object that contains the mistake, if it is another one; the message names it too.
    """

    code: str
    message: str
    path: str = ""
    severity: Severity = "error"
    origin: ObjectKey | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Render as `path: message`."""
        return f"{self.path}: {self.message}" if self.path else self.message
