"""The file source: the same stores as the reflectors', filled from files while these change.

A file that breaks, or is emptied, keeps the last good version of its objects; one that is removed removes them. How a
file is read is known to `manifests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import structlog

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.loader import ManifestError, ManifestFile, find_files, merge, read_manifest
from apisix_ingress.kube.manifests.paths import exists
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.regular_files import FileVersion, file_version
from apisix_ingress.runtime.tasks import in_daemon, in_turns
from apisix_ingress.state.store import Store

log = structlog.get_logger()

POLL_SECONDS = 0.25

_EMPTIED = "is empty, as if somebody were about to write it: its objects stay; remove the file if they are to go"


class ManifestSource:
    """Keeps stores equal to files that change.

    Args:
        paths: Files and folders.
        stores: By kind; a kind without a store is not read. Nobody else writes them.
        clock: Paces the looks.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        stores: Mapping[str, Store[Any]],
        *,
        clock: Clock,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once nothing was wrong with any file."""
        self.problem = ""
        """What is wrong with the files right now, for people; empty: nothing."""
        self._paths = tuple(map(Path, paths))
        self._stores = stores
        self._clock = clock
        self._resources = {kind: resource for kind, resource in RESOURCES.items() if kind in stores}
        self._files: dict[Path, ManifestFile] = {}
        self._read_as: dict[Path, FileVersion] = {}
        self._looked: dict[Path, FileVersion] = {}
        self._published = False

    async def run(self) -> None:
        """Follow the files until cancelled.

        Raises:
            ConfigError: at the start, if there is nothing at one of the paths, or nobody can tell.
        """
        for path in self._paths:
            _require(path)
        self._looked = await self._signatures() or {}
        while True:
            await self._look()
            await self._clock.sleep(POLL_SECONDS)

    async def _look(self) -> None:
        """Read what changed and has stayed as it is since the last look: nobody is writing it just now."""
        before = self._looked
        now = await self._signatures()
        if now is None:
            self._published = False
            return
        self._looked = now
        quiet = (path for path in sorted(now) if before.get(path) == now[path])
        changed = [path for path in quiet if self._read_as.get(path) != now[path]]
        removed = [path for path in self._files if path not in now and path not in before]
        if not changed and not removed and self._published:
            return
        # Parsing may take long: it is done elsewhere, the result is taken over here.
        read = await in_daemon(lambda: [read_manifest(path, self._resources) for path in changed], name="manifests")
        for path, file in zip(changed, read, strict=True):
            self._adopt(path, file, now[path])
        for path in removed:
            del self._files[path]
            self._read_as.pop(path, None)
        await self._publish()
        self._published = True

    async def _signatures(self) -> dict[Path, FileVersion] | None:
        """Return what changes when a file does; None while one of the paths can't be looked at at all."""
        try:
            return await in_daemon(lambda: _signatures_of(self._paths), name="manifests")
        except OSError as error:
            self._tell(f"{error.filename}: can't be read: {error.strerror}; its objects stay as they are")
            return None

    def _adopt(self, path: Path, file: ManifestFile, signature: FileVersion) -> None:
        """Take a file over; while something is wrong with it, nothing that was good in it is removed."""
        self._read_as[path] = signature
        for key, found in file.unknown.items():
            for each in found:
                log.warning("manifest.unknown_field", object=str(key), path=each.path, nearest=each.nearest)
        for unread in file.unread:
            log.warning("manifest.unread", problem=str(unread))
        known = self._files.get(path)
        if known is not None and known.objects and not signature.size:
            file.errors.append(ManifestError(file.name, _EMPTIED))
        if file.errors and known is not None:
            file.objects = {**known.objects, **file.objects}
        self._files[path] = file

    async def _publish(self) -> None:
        result = merge([self._files[path] for path in sorted(self._files)])
        async for item in in_turns(result.objects):
            self._set(item)
        there = {item.meta.key for item in result.objects}
        for store in self._stores.values():
            for key in [item.meta.key for item in store.values() if item.meta.key not in there]:
                store.delete(key)
        for kind, count in sorted(result.ignored.items()):
            log.info("manifest.ignored", kind=kind, objects=count)
        self._tell("; ".join(map(str, result.errors)))
        log.info("manifests.read", files=len(self._files), objects=len(result.objects))
        # What can't be read at the start was never known here, but may well be in the gateway.
        if not any(file.errors for file in self._files.values()):
            for store in self._stores.values():
                store.synced = True
            self.synced.set()

    def _set(self, item: KubeObject) -> None:
        store = self._stores[item.meta.kind]
        store.set(_with_generation(item, store.get(item.meta.key)))

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("manifest.broken", problem=problem)
        self.problem = problem


def _signatures_of(paths: Iterable[Path]) -> dict[Path, FileVersion]:
    """Return what changes when a file does.

    Raises:
        OSError: one of the paths can't be looked at.
    """
    versions = ((file, file_version(file)) for path in paths for file in find_files(path))
    return {file: version for file, version in versions if version != FileVersion()}


def _require(path: Path) -> None:
    try:
        is_there = exists(path)
    except OSError as error:
        raise ConfigError(f"--manifests {path}: {error.strerror}") from None
    if not is_there:
        raise ConfigError(f"--manifests {path}: no such file or folder")


def _with_generation(item: KubeObject, before: Any) -> KubeObject:
    """Return an object with the generation that the API server would have given it: one more for each new spec."""
    if not isinstance(item, CustomObject) or not isinstance(before, CustomObject):
        return item
    known = before.meta.generation
    generation = known if item.spec == before.spec else known + 1
    return cast("KubeObject", replace(item, meta=replace(item.meta, generation=max(item.meta.generation, generation))))
