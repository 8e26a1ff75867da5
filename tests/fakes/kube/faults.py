"""Requests to the API server in this process, and its faults on demand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    """A received request. `verb` is that of RBAC: get, list, watch, create, update, patch or delete."""

    verb: str
    plural: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: Any = None


@dataclass(slots=True)
class Fault:
    """A fault for matching requests.

    Attributes:
        verb: As in `Seen`, or `*`.
        plural: Of the kind, or `*`.
        status: Status of the response; 0: the usual response, after the delay.
        body: Text of that response; None: a Status object.
        retry_after: Header of that response, in seconds.
        delay: Seconds before anything happens.
        apply: Apply the request nevertheless: only its response is lost.
        cut: Close the connection instead of responding.
        hang: Never respond.
        when: Additional condition.
        times: Number of requests that it affects; None: all.
    """

    verb: str = "*"
    plural: str = "*"
    status: int = 0
    body: str | None = None
    retry_after: str | None = None
    delay: float = 0.0
    apply: bool = False
    cut: bool = False
    hang: bool = False
    when: Callable[[Seen], bool] | None = None
    times: int | None = None

    def hits(self, seen: Seen) -> bool:
        """Return whether it applies to a request, and count it if so."""
        if self.verb not in ("*", seen.verb) or self.plural not in ("*", seen.plural) or self.times == 0:
            return False
        if self.when is not None and not self.when(seen):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Refusal(Exception):
    """A response other than success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
