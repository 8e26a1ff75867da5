"""Raises the limit of open files as far as the process may raise it."""

from __future__ import annotations

import resource

MOST = 2**16
"""Upper limit; the program never needs more."""


def raise_limit() -> int:
    """Raise the soft limit to the hard limit, at most `MOST`; return the new soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft  # a sandbox may reject a value below the hard limit
        return wanted
    return soft
