"""What is imported leanly behaves as what is imported otherwise."""

import dataclasses
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.startup.slim_imports import lean_imports


@pytest.fixture
def lean() -> Iterator[None]:
    with lean_imports():
        yield
    gc.unfreeze()  # what other tests leave behind has to be found


def with_slots() -> tuple[type[Any], type[Any]]:
    """Return a frozen dataclass and one that inherits from it."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Key:
        kind: str
        name: str = dataclasses.field(default="", repr=False)
        inner: Any = None

    @dataclasses.dataclass(frozen=True, slots=True)
    class Longer(Key):
        more: int = 0

    return Key, Longer


def without_slots() -> tuple[type[Any], type[Any]]:
    """Return the same without slots, the second not a dataclass of its own."""

    @dataclasses.dataclass(frozen=True)
    class Key:
        kind: str
        name: str = dataclasses.field(default="", repr=False)
        inner: Any = None
        more: int = 0

    class Longer(Key):
        pass

    return Key, Longer


def outcome(act: Callable[[], object]) -> tuple[str, object]:
    """Return how a call ends."""
    try:
        return "returns", act()
    except Exception as error:
        return type(error).__name__, str(error)


def behaviour(cls: type[Any], other: type[Any]) -> list[object]:
    """Return what a dataclass does, with its mistakes."""
    one, same, longer = cls("a", "b", [1]), cls("a", "b", [1]), other("a", more=3)
    ring: list[object] = []
    ring.append(cls("ring", inner=ring))
    mistakes = [
        partial(act, each, name)
        for each in (one, longer)
        for name in ("kind", "more", "nosuch", "__doc__")
        for act in (_set, delattr)
    ]
    return [
        *(repr(each) for each in (one, longer, ring)),
        (one == same, one == longer, one != same, hash(cls("a")) == hash(cls("a"))),
        outcome(lambda: hash(one)),
        dataclasses.asdict(longer),
        repr(dataclasses.replace(longer, kind="z")),
        *(outcome(mistake) for mistake in mistakes),
    ]


def _set(item: object, name: str) -> None:
    setattr(item, name, 1)


@pytest.mark.parametrize("made", [with_slots, without_slots])
@pytest.mark.usefixtures("lean")
def test_dataclasses_behave_as_those_of_python(made: Callable[[], tuple[type[Any], type[Any]]]) -> None:
    light = made()
    with pytest.MonkeyPatch.context() as patch:
        for name, function in ORIGINAL.items():
            patch.setattr(dataclasses, name, function)
        heavy = made()
    assert behaviour(*light) == behaviour(*heavy)
    assert light[0].__repr__.__qualname__ == heavy[0].__repr__.__qualname__


ORIGINAL = {name: vars(dataclasses)[name] for name in ("_repr_fn", "_frozen_get_del_attr") if name in vars(dataclasses)}


def test_dataclasses_are_made_by_python_again_afterwards() -> None:
    with lean_imports():
        inside = {name: vars(dataclasses)[name] is function for name, function in ORIGINAL.items()}
    gc.unfreeze()
    assert {name: vars(dataclasses)[name] for name in ORIGINAL} == ORIGINAL
    # Where Python has not both it makes classes in another way, and is left alone.
    assert inside == dict.fromkeys(ORIGINAL, len(ORIGINAL) < 2)


def test_schemas_are_as_always_but_for_the_types_of_their_words() -> None:
    script = (
        "import typing\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "before = typing.TypedDict\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "from pydantic import BaseModel, TypeAdapter\n"
        "from typing_extensions import TypedDict\n"
        "from pydantic_core import core_schema\n"
        "class Movie(TypedDict, total=False):\n"
        "    name: typing.Annotated[str, 'title']\n"
        "class Model(BaseModel):\n"
        "    movie: Movie\n"
        "    year: int = 0\n"
        "print(Model.model_validate({'movie': {'name': 'x'}, 'year': '7'}))\n"
        "print(TypeAdapter(Movie).json_schema()['properties'], typing.TypedDict is before)\n"
        "print(core_schema.int_schema(gt=0), core_schema.IntSchema(type='int'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "movie={'name': 'x'} year=7",
        "{'name': {'title': 'Name', 'type': 'string'}} True",
        "{'type': 'int', 'gt': 0} {'type': 'int'}",
    ]


@pytest.mark.parametrize(
    "declared", ["class Word(TypedDict, closed=True):\n    type: str", "Word = TypedDict('Word', {})"]
)
def test_schema_words_that_are_declared_otherwise_are_imported_as_they_are(declared: str, tmp_path: Path) -> None:
    (tmp_path / "pydantic_core").mkdir()
    (tmp_path / "pydantic_core" / "__init__.py").touch()
    words = tmp_path / "pydantic_core" / "core_schema.py"
    words.write_text(f"from typing_extensions import TypedDict\n{declared}\n")
    script = (
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import pydantic_core.core_schema as words\n"
        "from typing_extensions import TypedDict, is_typeddict\n"
        "print(words.__file__, is_typeddict(words.Word))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{words} True\n"


def test_no_plugin_of_pydantic_is_looked_for() -> None:
    script = (
        "import sys\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "print('pydantic.plugin._schema_validator' in sys.modules, 'importlib.metadata' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_what_was_imported_is_left_out_of_collections() -> None:
    script = (
        "import gc\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import apisix_ingress.app\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 50_000, gc.get_count()[0] < 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True"]


def test_only_what_tracers_are_told_stays_plain() -> None:
    script = (
        "import attr\n"
        "before = attr.s\n"
        "from apisix_ingress.startup.slim_imports import lean_imports\n"
        "with lean_imports():\n"
        "    import aiohttp\n"
        "from aiohttp.client_reqrep import ContentDisposition\n"
        "from aiohttp.tracing import TraceRequestStartParams\n"
        "print(attr.s is before, attr.has(ContentDisposition), attr.has(TraceRequestStartParams))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"]
