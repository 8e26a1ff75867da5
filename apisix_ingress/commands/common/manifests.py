"""Reads the manifests of a command in one pass over files, folders and standard input, and collects their mistakes.

Importing it is expensive: commands do so when they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apisix_ingress.diagnostics.collect.offline import Outcome, complaints, settle, warnings
from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.loader import LoadResult, load
from apisix_ingress.settings import Settings
from apisix_ingress.wiring.options import translation_options


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests that were read, and their records."""

    loaded: LoadResult
    outcome: Outcome

    def warnings(self) -> Iterator[str]:
        """Yield a line for each item that has no record and is not a problem."""
        return warnings(self.outcome, self.loaded)

    def problems(self) -> Iterator[str]:
        """Yield a line for each problem."""
        return complaints(self.outcome, self.loaded)


def read_manifests(paths: Sequence[str], settings: Settings) -> Manifests:
    """Read and translate manifests without printing anything.

    Raises:
        ConfigError: A path does not exist.
    """
    loaded = load(paths)
    return Manifests(loaded, settle(loaded.objects, translation_options(settings)))


def load_whole(paths: Sequence[str]) -> LoadResult:
    """Read manifests for a comparison.

    Raises:
        ConfigError: A path does not exist, or a file cannot be read: missing objects would look like deletes.
    """
    loaded = load(paths)
    if loaded.errors:
        errors = "\n".join(map(str, loaded.errors))
        raise ConfigError(f"{errors}\nthe comparison requires all objects: correct these files")
    return loaded


def read_whole_manifests(paths: Sequence[str], settings: Settings) -> Manifests:
    """Read and translate manifests for a comparison.

    Raises:
        ConfigError: As for `load_whole`.
    """
    loaded = load_whole(paths)
    return Manifests(loaded, settle(loaded.objects, translation_options(settings)))
