"""docs/architecture.md names code that exists: its two paths with their delays."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from apisix_ingress.kube.status import schedule

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "architecture.md"
PATHS = ("From an endpoint to a write", "From a rejected record to a condition")
ROW = re.compile(r"\| (?P<step>.+?) \| (?P<code>.+?) \| ?(?P<delay>.*?) ?\|")
CODE = re.compile(r"`([\w/]+\.py)`(?: `([\w.]+)`)?")
DELAY = re.compile(r"`(\w+)` = ([\d.]+) s")
TOP = ("providers/", "translation/")


class Place(NamedTuple):
    """A module, and a name in it; empty: the module alone."""

    module: str
    name: str


class Step(NamedTuple):
    """A row of a path; `delay` is a constant and its seconds."""

    places: tuple[Place, ...]
    delay: tuple[str, float] | None


def module_of(path: str) -> str:
    """Return the module of a path on the page."""
    whole = path if path.startswith(TOP) else f"apisix_ingress/{path}"
    return whole.removesuffix(".py").replace("/", ".")


def steps(title: str) -> Iterator[Step]:
    """Yield the steps of a path of the page."""
    section = PAGE.read_text().split(f"### {title}\n")[1].split("\n#")[0]
    rows = [row for line in section.splitlines() if (row := ROW.fullmatch(line)) and row["code"] != "code"]
    for row in rows:
        if places := tuple(Place(module_of(path), name) for path, name in CODE.findall(row["code"])):
            delay = DELAY.fullmatch(row["delay"])
            assert delay or not row["delay"], f"{row['delay']!r} is not a constant with its value"
            yield Step(places, (delay[1], float(delay[2])) if delay else None)


def traced(title: str) -> list[Place]:
    """Return the methods of a path, in their order."""
    return [place for step in steps(title) for place in step.places if "." in place.name]


def found(place: Place) -> object:
    """Return the code at a place."""
    value: object = importlib.import_module(place.module)
    for part in filter(None, place.name.split(".")):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("title", PATHS)
def test_every_step_names_code_that_exists(title: str) -> None:
    places = [place for step in steps(title) for place in step.places]
    assert len(places) > 10
    for place in places:
        assert found(place) is not None


@pytest.mark.parametrize("title", PATHS)
def test_every_delay_is_that_of_the_code(title: str) -> None:
    delays = [(step.places[-1].module, *step.delay) for step in steps(title) if step.delay]
    assert delays
    for module, name, seconds in delays:
        assert getattr(importlib.import_module(module), name) == pytest.approx(seconds), name


def test_delays_of_the_schedule_add_up_to_its_bound() -> None:
    path = [step.delay for step in steps(PATHS[1]) if step.delay and step.places[-1].module == schedule.__name__]
    *parts, (last, total) = path
    assert last == "MAX_DELAY_SECONDS"
    assert sum(seconds for _, seconds in parts) == pytest.approx(total)
