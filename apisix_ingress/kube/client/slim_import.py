"""The `kubernetes` package, imported without what this program never uses.

Its top packages import every model, requests and OAuth: half of the time that the whole program takes to start, and
13 MB. Inside `light()` their submodules are found, but the code of those packages themselves is not run. Nothing here
is about what the submodules do.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_ROOT = "kubernetes"
_PACKAGES = ("", ".aio", ".aio.client", ".aio.client.models", ".aio.config", ".aio.utils")
_NAMES = {"Configuration": "kubernetes.aio.client.configuration"}
"""What submodules ask their packages for, and where it is."""
_UNUSED = ("ApiClient",)
"""What they ask for and only functions use that nobody here calls; it would load dateutil with its time zones."""


@contextmanager
def light() -> Iterator[None]:
    """Let submodules of the package be imported; does nothing if the whole package was imported already.

    They are a copy of our own: whoever imports the package outside gets the whole of it.
    """
    if _ROOT in sys.modules:
        yield
        return
    own = _own()
    sys.modules.update(own)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _ROOT]:
            own[name] = sys.modules.pop(name)


@cache
def _own() -> dict[str, ModuleType]:
    """Return the copy: at first packages that have a place to find submodules in, and nothing else."""
    spec = find_spec(_ROOT)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {_ROOT!r}", name=_ROOT)
    root = Path(spec.origin).parent
    return {_ROOT + tail: _shell(_ROOT + tail, root.joinpath(*tail.split("."))) for tail in _PACKAGES}


def _shell(name: str, folder: Path) -> ModuleType:
    def find(attribute: str) -> object:
        if attribute in _UNUSED:
            return None
        if attribute not in _NAMES:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(importlib.import_module(_NAMES[attribute]), attribute)

    shell = ModuleType(name)
    shell.__path__ = [str(folder)]
    shell.__package__ = name
    shell.__getattr__ = find  # type: ignore[method-assign]  # PEP 562: how a module is asked for what it has not
    return shell
