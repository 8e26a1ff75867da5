"""Configures the C library's allocator to prevent heap fragmentation in a process that runs for months.

asyncio allocates 256 KiB for each read of a socket and frees most of it at once. glibc takes the first such block from
the operating system, but all blocks after the first free from the heap. Blocks allocated next to them prevent the gap
from closing, so the heap grows although its use does not. A block from the operating system costs 13 us, and a read
through TLS needs two, so asyncio is also configured to allocate less. Python's own allocator is not affected.
"""

from __future__ import annotations

import ctypes
from asyncio import selector_events, sslproto

_MMAP_THRESHOLD = -3
"""`M_MMAP_THRESHOLD` of glibc's malloc.h. Setting it disables its dynamic adjustment."""

_LARGE = 128 * 1024
_PIECE = 64 * 1024
"""Buffer size of one socket read: smaller than a large block, and larger than any response except lists."""


def keep_large_blocks_apart() -> bool:
    """Permanently allocate large blocks from the operating system; return whether the C library supports it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGE) == 1


def read_small_pieces() -> bool:
    """Reduce asyncio's read buffers; return whether this version of asyncio supports it."""
    readers = (sslproto.SSLProtocol, getattr(selector_events, "_SelectorTransport", None))
    known = [reader for reader in readers if isinstance(getattr(reader, "max_size", None), int)]
    for reader in known:
        setattr(reader, "max_size", _PIECE)  # noqa: B010 (no stub knows the attribute)
    return len(known) == len(readers)
