"""The C library's allocator: kept from scattering a heap that is in use for months. What Python allocates is not here.

asyncio asks for 256 KiB for each read of a socket and gives most of it back at once. glibc takes such blocks from the
operating system at first, but from the heap as soon as one was freed: what is allocated next to them keeps the gap from
closing, and the heap grows although no more of it is in use.
"""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h; once it is set it no longer moves by itself."""

_LARGE = 128 * 1024


def keep_large_blocks_apart() -> bool:
    """Have large blocks come from the operating system for good; say whether the C library knows how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGE) == 1
