"""What happened in one run, when and to whom: for people who look for a cause, and as a digest to compare runs by."""

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
        """Return what two runs have in common only if everything in them was the same."""
        return hashlib.sha256("\n".join(map(str, self.entries)).encode()).hexdigest()[:16]

    def text(self) -> str:
        """Return all of it, a line an entry."""
        return "\n".join(map(str, self.entries))
