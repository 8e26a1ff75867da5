"""How much a route lets through, in classes; `translation.plugins.exposure` classifies routes."""

from __future__ import annotations

from enum import IntEnum


class Exposure(IntEnum):
    """The classes of routes, in the order of their first writes."""

    REFUSES = 0
    """It has no backend: it responds with a status or a redirect."""
    GUARDED = 1
    """It authenticates, authorizes, restricts or limits requests."""
    UNKNOWN = 2
    """It has a plugin that may do so."""
    OPEN = 3
    """It serves every request."""
