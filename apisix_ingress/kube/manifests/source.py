"""Fills the stores from manifest files instead of reflectors, and follows changes of these files.

If a file becomes invalid or empty, the last good version of its objects stays. If a file is removed, its objects are
removed. `loader` reads a file.
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

_EMPTIED = "is empty; its objects stay, because it may be about to be written; to remove them, remove the file"


class ManifestSource:
    """Keeps stores in sync with files.

    Args:
        paths: Files and folders.
        stores: By kind; a kind without a store is not read. Nothing else writes them.
        clock: Paces polling.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        stores: Mapping[str, Store[Any]],
        *,
        clock: Clock,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once all files were valid."""
        self.problem = ""
        """What is wrong with the files now, as text; empty if nothing."""
        self._paths = tuple(map(Path, paths))
        self._stores = stores
        self._clock = clock
        self._resources = {kind: resource for kind, resource in RESOURCES.items() if kind in stores}
        self._files: dict[Path, ManifestFile] = {}
        self._read_as: dict[Path, FileVersion] = {}
        self._last_seen: dict[Path, FileVersion] = {}
        self._published = False

    @property
    def skipped(self) -> str:
        """The objects that are not read although they were meant for this program, with the remedy; or empty."""
        return "; ".join(str(each) for path in sorted(self._files) for each in self._files[path].unread)

    def check(self) -> None:
        """Raise ConfigError if a path does not exist or cannot be accessed."""
        for path in self._paths:
            _require(path)

    async def run(self) -> None:
        """Follow the files until cancelled.

        Raises:
            ConfigError: At the start, a path does not exist or cannot be accessed.
        """
        self.check()
        self._last_seen = await self._versions() or {}
        while True:
            await self._poll()
            await self._clock.sleep(POLL_SECONDS)

    async def _poll(self) -> None:
        """Read files that changed, but not since the last poll: a file that still changes is being written."""
        before = self._last_seen
        now = await self._versions()
        if now is None:
            self._published = False
            return
        self._last_seen = now
        quiet = (path for path in sorted(now) if before.get(path) == now[path])
        changed = [path for path in quiet if self._read_as.get(path) != now[path]]
        removed = [path for path in self._files if path not in now and path not in before]
        if not changed and not removed and self._published:
            return
        # Parsing may take long, so a thread does it.
        read = await in_daemon(lambda: [read_manifest(path, self._resources) for path in changed], name="manifests")
        for path, file in zip(changed, read, strict=True):
            self._adopt(path, file, now[path])
        for path in removed:
            del self._files[path]
            self._read_as.pop(path, None)
        await self._publish()
        self._published = True

    async def _versions(self) -> dict[Path, FileVersion] | None:
        """Return the version of each file; None while a path cannot be accessed."""
        try:
            return await in_daemon(lambda: _versions_of(self._paths), name="manifests")
        except OSError as error:
            self._report(f"{error.filename}: cannot be read: {error.strerror}; its objects stay unchanged")
            return None

    def _adopt(self, path: Path, file: ManifestFile, version: FileVersion) -> None:
        """Use a new version of a file; if it has errors, keep the former objects that it lacks."""
        self._read_as[path] = version
        for key, found in file.unknown.items():
            for each in found:
                log.warning("manifest.unknown_field", object=str(key), path=each.path, nearest=each.nearest)
        for unread in file.unread:
            log.warning("manifest.unread", problem=str(unread))
        known = self._files.get(path)
        if known is not None and known.objects and not version.size:
            file.errors.append(ManifestError(file.name, _EMPTIED))
        if file.errors and known is not None:
            file.objects = {**known.objects, **file.objects}
        self._files[path] = file

    async def _publish(self) -> None:
        result = merge([self._files[path] for path in sorted(self._files)])
        async for item in in_turns(result.objects):
            self._set(item)
        present = {item.meta.key for item in result.objects}
        for store in self._stores.values():
            for key in [item.meta.key for item in store.values() if item.meta.key not in present]:
                store.delete(key)
        for kind, count in sorted(result.ignored.items()):
            log.info("manifest.ignored", kind=kind, objects=count)
        self._report("; ".join(map(str, result.errors)))
        log.info("manifests.read", files=len(self._files), objects=len(result.objects))
        # An object that cannot be read at the start may be in the gateway, so the stores are not complete yet.
        if not any(file.errors for file in self._files.values()):
            for store in self._stores.values():
                store.synced = True
            self.synced.set()

    def _set(self, item: KubeObject) -> None:
        store = self._stores[item.meta.kind]
        store.set(_with_generation(item, store.get(item.meta.key)))

    def _report(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("manifest.broken", problem=problem)
        self.problem = problem


def _versions_of(paths: Iterable[Path]) -> dict[Path, FileVersion]:
    """Return the version of each file.

    Raises:
        OSError: A path cannot be accessed.
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
    """Return an object with a generation like the API server's: it increases by one with each new spec."""
    if not isinstance(item, CustomObject) or not isinstance(before, CustomObject):
        return item
    known = before.meta.generation
    generation = known if item.spec == before.spec else known + 1
    return cast("KubeObject", replace(item, meta=replace(item.meta, generation=max(item.meta.generation, generation))))
