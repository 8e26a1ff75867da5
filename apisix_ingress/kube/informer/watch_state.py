"""The state of one reflector between lists and watches, with a method for each transition. Nothing here does I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

MALFORMED_LIMIT = 4
"""After this many watches in a row that returned no valid events, the kind is listed."""
UNANSWERED_LIMIT = 2
"""After this many watches in a row without a response, the reflector checks the API server's version.

After this many checks in a row that find no rollback, the kind is listed: changes arrive late, but they arrive.
"""


@dataclass(slots=True)
class WatchState:
    """Where to continue, and why the reflector may have to list.

    Attributes:
        version: resourceVersion from which the next watch continues; None to list first.
        is_open: Whether the API server responded to the current watch request.
        opened_at: Monotonic time of that response.
        absent_since: Monotonic time since which the API server does not serve the kind; None if it does.
    """

    version: str | None = None
    is_open: bool = False
    opened_at: float = 0.0
    absent_since: float | None = None
    _unanswered: int = 0
    _checks: int = 0
    _silent: int = 0
    _malformed: int = 0
    _confirm_after: list[int] = field(default_factory=list)

    @property
    def needs_check(self) -> bool:
        """Whether the API server's version must be checked, because many watches in a row got no response."""
        return self._unanswered >= UNANSWERED_LIMIT

    def listed(self, version: str, *, confirm_after: tuple[int, ...] = ()) -> None:
        """Continue from a list; list again after these numbers of watches, each counted from the list before it."""
        self.version = version
        self.absent_since = None
        if confirm_after:
            self._confirm_after = list(confirm_after)

    def require_list(self) -> None:
        """List before the next watch."""
        self.version = None

    def watch_requested(self) -> None:
        """Record that a watch request is sent."""
        self.is_open = False

    def watch_opened(self, now: float) -> None:
        """Record that the API server responded to a watch request."""
        self.is_open, self.opened_at = True, now
        self._unanswered = self._checks = 0

    def watch_unanswered(self) -> None:
        """Record a watch request without a response."""
        self._unanswered += 1

    def watch_malformed(self) -> None:
        """Record a watch with a response, but without events; list after some in a row."""
        self._malformed += 1
        if self._malformed >= MALFORMED_LIMIT:
            self._malformed = 0
            self.version = None

    def watch_ended(self) -> None:
        """Record a watch that ended normally; list if an earlier list is due for confirmation."""
        if self._confirm_after:
            self._confirm_after[0] -= 1
            if not self._confirm_after[0]:
                self._confirm_after.pop(0)
                self.version = None

    def watch_silent(self, limit: int) -> bool:
        """Record a watch without an event; return whether it was the last of `limit` in a row."""
        self._silent = (self._silent + 1) % limit
        return not self._silent

    def event_received(self) -> None:
        """Record a valid event."""
        self._malformed = self._silent = 0

    def version_checked(self) -> None:
        """Record that the API server reported its version."""
        self._unanswered = 0

    def check_passed(self) -> bool:
        """Record a check that found no rollback; return whether the kind must be listed nevertheless."""
        self._checks += 1
        return self._checks >= UNANSWERED_LIMIT

    def kind_absent(self, now: float) -> float:
        """Record that the API server does not serve the kind; return since when."""
        if self.absent_since is None:
            self.absent_since = now
        return self.absent_since

    def kind_served(self) -> None:
        """Record that the API server serves the kind."""
        self.absent_since = None
