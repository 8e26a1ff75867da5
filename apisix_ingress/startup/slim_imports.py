"""Importing fast: what libraries look for and this program never uses is kept out, and the garbage collector is idle.

It is for whoever imports the whole program, once. Nothing here knows a library beyond the names below; each trick
stands alone, leaves what was imported before as it is, and is without effect where a library has nothing to it.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from reprlib import recursive_repr
from types import ModuleType
from typing import Any

_UNUSED = ("rich", "colorama", "greenlet")
"""What structlog has for tracebacks, Windows and threads of another kind; it does without where they are absent."""

_PARTS = {"httpx": "_exceptions", "prometheus_client": ""}
"""Packages that load much for what nobody uses here → the submodule whose names are asked of the package itself."""

_PLUGINS = "pydantic.plugin._loader"


@contextmanager
def lean_imports() -> Iterator[None]:
    """Keep unused parts out of the imports made meanwhile; what was imported before stays."""
    with ExitStack() as tricks:
        for trick in (_idle_collector, _few_functions, _plain_traces, _no_unused, _no_certificates, _parts_of_packages):
            tricks.enter_context(trick())
        sys.modules.setdefault(_PLUGINS, _no_plugins())
        _import_schema_words()
        yield


@contextmanager
def _idle_collector() -> Iterator[None]:
    """Look for no garbage: everything that is imported stays, and to look takes a tenth of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # or the next allocation would look through all of it at once
        gc.enable()


@contextmanager
def _no_unused() -> Iterator[None]:
    kept_out = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(kept_out))  # type: ignore[arg-type]  # None: an import of it fails at once
    try:
        yield
    finally:
        for name in kept_out:
            del sys.modules[name]


@contextmanager
def _parts_of_packages() -> Iterator[None]:
    """Let parts of packages be imported without the whole, which whoever asks later gets, with the same parts."""
    shells = {name: _shell(name) for name in _PARTS if name not in sys.modules}
    sys.modules.update(shells)
    try:
        for name, shell in shells.items():
            if submodule := _PARTS[name]:
                part = importlib.import_module(f"{name}.{submodule}")
                vars(shell).update({word: getattr(part, word) for word in part.__all__})
        yield
    finally:
        for name in shells:
            del sys.modules[name]


def _shell(name: str) -> ModuleType:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    shell = ModuleType(name)
    shell.__path__ = list(spec.submodule_search_locations)
    return shell


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Leave contexts that are made at import without certificates, so that they trust nobody.

    aiohttp makes two for requests that bring none, and reads the system's certificates for each: a tenth of a start.
    Ours bring their own (`gateway.adminapi.tls`, `kube.client.credentials`, `webhook.server_certificate`).
    """
    read = ssl.SSLContext.load_default_certs, ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.load_default_certs = _load_nothing  # type: ignore[assignment,method-assign]
    ssl.SSLContext.set_default_verify_paths = _load_nothing  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        ssl.SSLContext.load_default_certs, ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


def _load_nothing(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    pass


def _no_plugins() -> ModuleType:
    """Return what pydantic finds its plugins with, finding none.

    It would read what every installed package declares, and load what reads that, to find that there are none.
    """
    loader = ModuleType(_PLUGINS)
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    return loader


def _import_schema_words() -> None:
    """Import what pydantic writes its schemas in, without the types of the words: hundreds, for type checkers."""
    if "pydantic_core.core_schema" in sys.modules:
        return
    modules = [importlib.import_module(name) for name in ("typing", "typing_extensions")]
    before = [vars(module)["TypedDict"] for module in modules]
    try:
        for module in modules:
            vars(module)["TypedDict"] = _Shape
        # Words that a later version declares in another way are left to whoever imports them next, as they are.
        with suppress(TypeError):
            importlib.import_module("pydantic_core.core_schema")
    finally:
        for module, word in zip(modules, before, strict=True):
            vars(module)["TypedDict"] = word


class _Shape(dict[str, Any]):
    """In the place of a TypedDict whose fields nobody asks for."""

    def __init_subclass__(cls, *, total: bool = True) -> None:
        """Take what a TypedDict takes, and leave the types of the fields the texts they are."""


@contextmanager
def _plain_traces() -> Iterator[None]:
    """Let the classes of what aiohttp tells its tracers stay plain: there are no tracers here, and it makes sixteen."""
    if "aiohttp" in sys.modules or find_spec("attr") is None:
        yield
        return
    attr = importlib.import_module("attr")
    make = attr.s

    def made(*args: Any, **options: Any) -> Any:
        decorate = make(*args, **options)
        return decorate if args else lambda cls: cls if cls.__module__ == "aiohttp.tracing" else decorate(cls)

    attr.s = made  # type: ignore[attr-defined]
    try:
        yield
    finally:
        attr.s = make  # type: ignore[attr-defined]


@contextmanager
def _few_functions() -> Iterator[None]:
    """Let dataclasses be made without compiling what is hardly ever called.

    Of the six functions that are compiled for a frozen dataclass, ours and those of libraries, three are for people
    and mistakes: `__repr__`, `__setattr__` and `__delattr__`. These do the same, by the names of the fields.
    """
    own = {"_repr_fn": _repr_function, "_frozen_get_del_attr": _frozen_functions}
    before = {name: vars(dataclasses)[name] for name in own if name in vars(dataclasses)}
    if len(before) == len(own):  # they are Python's own affair: other versions make classes in another way
        vars(dataclasses).update(own)
    try:
        yield
    finally:
        vars(dataclasses).update(before)


def _repr_function(fields: Sequence[dataclasses.Field[Any]], _globals: object) -> Callable[[Any], str]:
    names = [field.name for field in fields]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _frozen_functions(cls: Any, fields: Sequence[dataclasses.Field[Any]], _globals: object) -> tuple[Any, Any]:
    names = {field.name for field in fields}

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__
