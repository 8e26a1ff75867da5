"""Results: one JSON object per line, appended immediately, so that an aborted run loses nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.world import Kind, Shape


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one scenario for one controller, or under the name `raw` the limits of the gateway."""

    run: str
    adapter: str
    title: str
    scenario: str
    size: int
    kind: Kind
    namespaces: int
    backends: int
    write_latency: str
    load: float
    figures: Mapping[str, float]
    hosts: int = 1
    ingress_class: str = "apisix"
    busy: float = 0.0
    """The share of the processors that other programs used just before the controller was started."""

    @property
    def shape(self) -> Shape:
        """The objects used in the measurement."""
        return Shape(self.size, self.kind, self.namespaces, self.backends, self.hosts, self.ingress_class)


class Book:
    """Appends the results of one run to a file."""

    def __init__(self, path: Path, write_latency: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._latency = write_latency
        self._run = time.strftime("%Y-%m-%dT%H:%M:%S")

    def add(
        self, adapter: str, title: str, scenario: str, shape: Shape, figures: Mapping[str, float], busy: float = 0.0
    ) -> Result:
        """Save a result and return it; the machine's load is the average of the last minute."""
        load = round(os.getloadavg()[0], 2)
        kept = {name: round(value, 4) for name, value in figures.items()}
        where = (shape.size, shape.kind, shape.namespaces, shape.backends)
        more = (shape.hosts, shape.ingress_class)
        result = Result(self._run, adapter, title, scenario, *where, self._latency, load, kept, *more, round(busy, 2))
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        return result


def read(path: Path) -> Iterator[Result]:
    """Read the results of a file."""
    for line in path.read_text().splitlines():
        yield Result(**json.loads(line))
