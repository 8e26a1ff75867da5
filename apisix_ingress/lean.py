"""Importing fast: what libraries look for and this program never uses is kept out, and the garbage collector is idle.

It is for whoever imports the whole program, once. Nothing here knows a library beyond the names below.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_UNUSED = ("httpx._main", "rich")
"""The command line of httpx and the pretty tracebacks of structlog. Both libraries do without where they are absent."""


@contextmanager
def lean_imports() -> Iterator[None]:
    """Keep unused parts out of the imports made meanwhile; what was imported before stays."""
    kept_out = [name for name in _UNUSED if name not in sys.modules]
    collects = gc.isenabled()
    gc.disable()  # everything that is imported stays: to look for garbage in it takes a tenth of the time
    sys.modules.update(dict.fromkeys(kept_out))  # type: ignore[arg-type]  # None: an import of it fails at once
    try:
        yield
    finally:
        for name in kept_out:
            del sys.modules[name]
        if collects:
            gc.enable()
