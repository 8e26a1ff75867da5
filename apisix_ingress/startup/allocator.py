"""The C library's allocator: kept from scattering a heap that is in use for months. What Python allocates is not here.

asyncio asks for 256 KiB for each read of a socket and gives most of it back at once. glibc takes such blocks from the
operating system at first, but from the heap as soon as one was freed: what is allocated next to them keeps the gap from
closing, and the heap grows although no more of it is in use. From the operating system they cost 13 us each, and a read
through TLS takes two: so asyncio is told to ask for less as well.
"""

from __future__ import annotations

import ctypes
from asyncio import selector_events, sslproto

_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h; once it is set it no longer moves by itself."""

_LARGE = 128 * 1024
_PIECE = 64 * 1024
"""What one read of a socket asks for: less than a large block, and more than anything but a list has."""


def keep_large_blocks_apart() -> bool:
    """Have large blocks come from the operating system for good; say whether the C library knows how."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGE) == 1


def read_small_pieces() -> bool:
    """Have asyncio ask for small blocks only when it reads; say whether this version of it can be told."""
    readers = (sslproto.SSLProtocol, getattr(selector_events, "_SelectorTransport", None))
    known = [reader for reader in readers if isinstance(getattr(reader, "max_size", None), int)]
    for reader in known:
        setattr(reader, "max_size", _PIECE)  # noqa: B010 (no stub knows the attribute)
    return len(known) == len(readers)
