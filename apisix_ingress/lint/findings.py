"""Findings: mistakes in manifests, each with its code, object, field and position in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from apisix_ingress.diagnostics.collect.offline import misspelt, overlaid, settle
from apisix_ingress.kube.manifests.loader import LARGEST_FILE, STDIN_NAME, LoadResult, ManifestError
from apisix_ingress.kube.manifests.locations import START, Locations
from apisix_ingress.lint.assumed import NOTHING, Assumed
from apisix_ingress.lint.plugins import PluginRules
from apisix_ingress.lint.rules import for_nginx, never_matching, useless, watched
from apisix_ingress.lint.structure import structure_problems
from apisix_ingress.lint.unchecked import NOT_CHECKED, unchecked
from apisix_ingress.model.formats.safe_yaml import Position
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.code import Code
from apisix_ingress.model.problem_codes.table import CODES, find_code
from apisix_ingress.runtime.regular_files import read_regular
from translation.core.options import Options

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake.

    Attributes:
        file: As given, or found below the given folder.
        line: From 1.
        column: From 1.
        level: A problem that makes a condition False is an error; what was not checked is a note.
        code: The problem code.
        object: e.g. `ApisixRoute default/web`; empty: the file itself.
        path: The field; empty: the whole object.
        message: A sentence with the remedy.
    """

    file: str
    line: int
    column: int
    level: Level
    code: Code
    object: str
    path: str
    message: str

    @property
    def text(self) -> str:
        """The sentence with its object and field."""
        return ": ".join(part for part in (self.object, self.path, self.message) if part)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Findings to suppress.

    Attributes:
        code: The problem code.
        object: `Kind namespace/name`; empty: every object.
    """

    code: Code
    object: str = ""

    def hits(self, finding: Finding) -> bool:
        """Return whether a finding is suppressed."""
        return finding.code == self.code and self.object in ("", finding.object)


def parse_suppression(text: str) -> Suppression:
    """Return the suppression `CODE` or `CODE=Kind namespace/name`.

    Raises:
        ValueError: Unknown code.
    """
    code, _, owner = text.partition("=")
    return Suppression(find_code(code.strip()), owner.strip())


def find(
    loaded: LoadResult,
    options: Options,
    *,
    plugins: PluginRules | None = None,
    live: Iterable[KubeObject] = (),
    assumed: Assumed = NOTHING,
) -> tuple[Finding, ...]:
    """Find the mistakes in manifests, and what was not checked, in the order of files and lines.

    Args:
        loaded: The manifests; their files are read again for the positions of findings.
        options: As configured for the controller.
        plugins: The plugins that exist; None: they are not checked.
        live: Objects of a cluster, which manifests replace and refer to; their own mistakes are not returned.
        assumed: What manifests refer to and neither they nor the cluster contain.
    """
    objects = watched(loaded.objects)
    outcome = settle(overlaid(live, (*assumed.objects, *objects.values())), options)
    nginx = for_nginx(objects.values(), outcome.world.view(), options)
    others = {*outcome.left_out, *nginx}  # annotations of ingress-nginx have an effect there
    problems = [*outcome.problems, *misspelt(outcome, loaded), *useless(objects, others)]
    problems += [] if plugins is None else plugins.problems(objects.values(), outcome, options)
    problems += never_matching(objects, outcome)
    problems += structure_problems(objects.values(), problems)
    judged = [_judged(objects[owner], problem, assumed) for owner, problem in problems if owner in objects]
    notes = unchecked(objects, outcome, options, assumed)
    index = _Index(loaded)
    of_objects = (_of_object(owner, problem, index) for owner, problem in (*judged, *notes) if problem)
    found = [*_of_files(loaded, index), *of_objects]
    return tuple(sorted(dict.fromkeys(found), key=lambda item: (item.file, item.line, item.column, item.code.number)))


def _judged(item: KubeObject, problem: Problem, assumed: Assumed) -> tuple[ObjectKey, Problem | None]:
    """Return a problem, or the note instead of it if only the files that are not known could show that it is one."""
    if not assumed.excuses(item, problem):
        return item.meta.key, problem
    why = assumed.excuse(item, problem)
    return item.meta.key, Problem(NOT_CHECKED, why, problem.path, "warning") if why else None


class _Index:
    """The positions of objects; a file is read only when it has a finding."""

    def __init__(self, loaded: LoadResult) -> None:
        self._loaded = loaded
        self._files: dict[str, Locations] = {}

    def of_file(self, error: ManifestError) -> Position:
        if error.position is not None or not error.at:
            return error.position or START
        return self._places(error.file).of(error.at)

    def of_object(self, owner: ObjectKey, path: str) -> tuple[str, Position]:
        file = self._loaded.files.get(owner, "")
        return file, self._places(file).of(owner, path) if file else START

    def _places(self, file: str) -> Locations:
        if file not in self._files:
            self._files[file] = Locations(self._content(file))
        return self._files[file]

    def _content(self, file: str) -> bytes:
        if file == STDIN_NAME:
            return self._loaded.stdin
        try:
            return read_regular(Path(file), LARGEST_FILE)
        except OSError:
            return b""  # it was deleted after it was loaded


def _of_files(loaded: LoadResult, index: _Index) -> Iterator[Finding]:
    yield from _with_code("ManifestInvalid", loaded.errors, index)
    yield from _with_code("KindNotRead", loaded.unread, index)
    yield from _with_code(NOT_CHECKED, loaded.unsupported, index)


def _with_code(word: str, errors: Iterable[ManifestError], index: _Index) -> Iterator[Finding]:
    level: Level = "note" if word == NOT_CHECKED else "error"
    for error in errors:
        yield Finding(error.file, *index.of_file(error), level, CODES[word], "", "", error.message)


def _of_object(owner: ObjectKey, problem: Problem, index: _Index) -> Finding:
    file, place = index.of_object(owner, problem.path)
    level: Level = "note" if problem.code == NOT_CHECKED else "warning" if problem.severity == "warning" else "error"
    return Finding(file, *place, level, CODES[problem.code], str(owner), problem.path, problem.message)
