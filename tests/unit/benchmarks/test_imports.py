"""Who imports whom among the benchmarks, inside functions as well."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import benchmarks


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "benchmarks":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
            yield (node.module or "").removeprefix("benchmarks.")


def name_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    (folder,) = map(Path, benchmarks.__path__)
    graph = {name_of(path.relative_to(folder)): set(imported(path)) for path in folder.rglob("*.py")}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("reporting.results") < order.index("reporting.report") < order.index("__main__")
