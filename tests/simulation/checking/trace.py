"""The events of one run, for debugging, and as a digest to compare runs."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened."""

    time: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.time - 1000:10.4f}  {self.who:<10} {self.what}"


@dataclass(slots=True)
class Trace:
    """Everything that happened, in order; `violations` are what must never happen."""

    entries: list[Entry] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def note(self, who: str, what: str) -> None:
        """Add an entry."""
        self.entries.append(Entry(asyncio.get_running_loop().time(), who, what))

    def violate(self, who: str, what: str) -> None:
        """Add an entry for something that must never happen."""
        self.note(who, f"VIOLATION {what}")
        self.violations.append(str(self.entries[-1]))

    def digest(self) -> str:
        """Return a digest that is equal only for identical runs."""
        return hashlib.sha256("\n".join(map(str, self.entries)).encode()).hexdigest()[:16]

    def text(self) -> str:
        """Return all entries, one per line."""
        return "\n".join(map(str, self.entries))
