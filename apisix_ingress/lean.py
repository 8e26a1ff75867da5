"""Importing fast: what libraries look for and this program never uses is kept out, and the garbage collector is idle.

It is for whoever imports the whole program, once. Nothing here knows a library beyond the names below.
"""

from __future__ import annotations

import gc
import importlib
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

_UNUSED = ("rich", "colorama", "greenlet")
"""What structlog has for tracebacks, Windows and threads of another kind; it does without where they are absent."""


@contextmanager
def lean_imports() -> Iterator[None]:
    """Keep unused parts out of the imports made meanwhile; what was imported before stays."""
    excerpt = None if "httpx" in sys.modules else _excerpt_of_httpx()
    kept_out = [name for name in _UNUSED if name not in sys.modules]
    collects = gc.isenabled()
    load_default_certs, verify_paths = ssl.SSLContext.load_default_certs, ssl.SSLContext.set_default_verify_paths
    gc.disable()  # everything that is imported stays: to look for garbage in it takes a tenth of the time
    ssl.SSLContext.load_default_certs = _load_nothing  # type: ignore[assignment,method-assign]
    ssl.SSLContext.set_default_verify_paths = _load_nothing  # type: ignore[assignment,method-assign]
    sys.modules.update(dict.fromkeys(kept_out))  # type: ignore[arg-type]  # None: an import of it fails at once
    try:
        yield
    finally:
        if sys.modules.get("httpx") is excerpt:
            del sys.modules["httpx"]  # who imports it from now on gets the whole, with the same exceptions
        for name in kept_out:
            del sys.modules[name]
        ssl.SSLContext.load_default_certs = load_default_certs  # type: ignore[method-assign]
        ssl.SSLContext.set_default_verify_paths = verify_paths  # type: ignore[method-assign]
        if collects:
            gc.freeze()  # or the next allocation would look through all of it at once, and find that it stays
            gc.enable()


def _excerpt_of_httpx() -> ModuleType:
    """Put a module in the place of httpx that has its exceptions alone: nothing else of it is used."""
    spec = find_spec("httpx")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("No module named 'httpx'", name="httpx")
    excerpt = ModuleType("httpx")
    excerpt.__path__ = list(spec.submodule_search_locations)
    sys.modules["httpx"] = excerpt
    exceptions = importlib.import_module("httpx._exceptions")
    vars(excerpt).update({name: getattr(exceptions, name) for name in exceptions.__all__})
    return excerpt


def _load_nothing(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    """Leave a context that is made at import without certificates, so that it trusts nobody.

    aiohttp makes two for requests that bring none, and reads the system's certificates for each: a tenth of a start.
    Ours bring their own (`gateway.tls`, `kube.credentials`, `webhook.certificate`).
    """
