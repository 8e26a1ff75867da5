"""Manifests as commands read them: one pass over files, folders and standard input, and what is wrong with them.

Importing it costs time: commands do so once they run.
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
    """What was read, and what it gives."""

    loaded: LoadResult
    outcome: Outcome

    def warnings(self) -> Iterator[str]:
        """Yield a line for each thing that is no problem but gives no record either."""
        return warnings(self.outcome, self.loaded)

    def problems(self) -> Iterator[str]:
        """Yield a line for each problem."""
        return complaints(self.outcome, self.loaded)


def read_manifests(paths: Sequence[str], settings: Settings) -> Manifests:
    """Read and translate manifests; nothing is printed.

    Raises:
        ConfigError: There is nothing at one of the paths.
    """
    loaded = load(paths)
    return Manifests(loaded, settle(loaded.objects, translation_options(settings)))


def read_whole_manifests(paths: Sequence[str], settings: Settings) -> Manifests:
    """Read and translate manifests that are compared with what is elsewhere.

    Raises:
        ConfigError: A file can't be read: half of the objects would look like many deletes.
    """
    found = read_manifests(paths, settings)
    if found.loaded.errors:
        told = "\n".join(map(str, found.loaded.errors))
        raise ConfigError(f"{told}\nwithout all objects nothing can be compared: correct these files")
    return found
