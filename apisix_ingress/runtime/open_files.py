"""How many files the process may have open: as many as it can be given without being asked."""

from __future__ import annotations

import resource

MOST = 2**16
"""More are of no use to anybody."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return what the soft limit is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft  # a sandbox may refuse what the limit allows
        return wanted
    return soft
