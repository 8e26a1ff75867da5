"""Loads objects from YAML and JSON files, in the same form as from an API server, and reports errors in the files.

`load` reads once, for the command line. `source` follows files that change; `yaml_file` parses untrusted files.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.paths import exists
from apisix_ingress.kube.manifests.unknown_fields import (
    UnknownField,
    fields_without_effect,
    is_for_gateways,
    is_meant_for_us,
    remedy,
)
from apisix_ingress.kube.manifests.yaml_file import LARGEST_FILE as LARGEST_FILE
from apisix_ingress.kube.manifests.yaml_file import Document, DocumentError, Unreadable, read_documents
from apisix_ingress.model.formats.safe_yaml import Position
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import DECODE_ERRORS, RESOURCES
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.runtime.regular_files import read_regular

log = structlog.get_logger()

STDIN = "-"
STDIN_NAME = "standard input"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class ManifestError:
    """An error in a file or one of its documents.

    Attributes:
        position: Where in the file, if known.
        at: The affected document, as messages name it, or object; empty for the whole file.
    """

    file: str
    message: str
    position: Position | None = field(default=None, compare=False)
    at: str | ObjectKey = field(default="", compare=False)

    def __str__(self) -> str:
        """Render as `file: message`."""
        return f"{self.file}: {self.message}"


@dataclass(slots=True)
class ManifestFile:
    """The content of one file."""

    name: str
    objects: dict[ObjectKey, KubeObject] = field(default_factory=dict)
    errors: list[ManifestError] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unread: list[ManifestError] = field(default_factory=list)
    unsupported: list[ManifestError] = field(default_factory=list)
    unknown: dict[ObjectKey, tuple[UnknownField, ...]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the file has neither objects nor errors."""
        return not (self.objects or self.errors or self.ignored or self.unread)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The objects of files, and the errors in these files.

    Attributes:
        objects: In the order of files and documents; each key occurs once.
        ignored: `apiVersion/kind` that this program does not read → number of objects.
        unread: Objects that are not read although they were meant for this program, with the remedy.
        unsupported: Objects of the Gateway API among the ignored ones.
        unknown: Fields of the objects that have no effect.
        empty: Paths without any document.
        files: Object → its file.
        stdin: The content of standard input.
    """

    objects: tuple[KubeObject, ...]
    errors: tuple[ManifestError, ...]
    ignored: Mapping[str, int]
    unread: tuple[ManifestError, ...] = ()
    unsupported: tuple[ManifestError, ...] = ()
    unknown: tuple[UnknownField, ...] = ()
    empty: tuple[str, ...] = ()
    files: Mapping[ObjectKey, str] = field(default_factory=dict, compare=False, repr=False)
    stdin: bytes = field(default=b"", compare=False, repr=False)


def load(
    paths: Iterable[str | Path], resources: Mapping[str, Resource] = RESOURCES, *, stdin: bytes | None = None
) -> LoadResult:
    """Read files, folders (recursively) and standard input (`-`), each once even if it is named twice.

    Args:
        paths: Where to read.
        resources: Kind → resource.
        stdin: The content of standard input, if the caller has read it already.

    Raises:
        ConfigError: A path does not exist.
    """
    names = tuple(dict.fromkeys(map(str, paths)))
    if missing := [path for path in names if path != STDIN and not _is_there(path)]:
        raise ConfigError("\n".join(f"{path or repr(path)}: no such file or folder" for path in missing))
    content = (sys.stdin.buffer.read(LARGEST_FILE + 1) if stdin is None else stdin) if STDIN in names else b""
    files: dict[str, ManifestFile] = {}
    empty: list[str] = []
    for path in names:
        found = [_parse(STDIN_NAME, content, resources)] if path == STDIN else _files_at(path, resources)
        for file in found:
            files.setdefault(file.name, file)
        if all(file.is_empty for file in found):
            empty.append(STDIN_NAME if path == STDIN else path)
    return replace(merge(tuple(files.values())), empty=tuple(empty), stdin=content)


def _is_there(path: str) -> bool:
    """Return whether a path exists, readable or not. An empty path does not exist, although `Path` takes it for `.`."""
    try:
        return bool(path) and exists(Path(path))
    except OSError:
        return True


def _files_at(path: str, resources: Mapping[str, Resource]) -> list[ManifestFile]:
    try:
        found = find_files(Path(path))
    except OSError as error:
        return [_unreadable(path, f"cannot be read: {error.strerror}")]
    return [read_manifest(file, resources) for file in found]


def find_files(path: Path) -> tuple[Path, ...]:
    """Return the file at a path, or the manifests below a folder, sorted, without hidden files and folders.

    Raises:
        OSError: The path does not exist or cannot be listed.
    """
    if not path.is_dir():
        path.stat()
        return (path,)
    os.listdir(path)  # os.walk silently skips a folder that cannot be listed
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = (Path(folder, name) for name in names if not name.startswith("."))
        # Opening a pipe blocks until another process writes to it.
        found.extend(file for file in files if file.suffix.lower() in SUFFIXES and not file.is_fifo())
    return tuple(sorted(found))


def read_manifest(path: Path, resources: Mapping[str, Resource]) -> ManifestFile:
    """Read a file; the result contains its errors."""
    try:
        content = read_regular(path, LARGEST_FILE)
    except OSError as error:
        return _unreadable(str(path), f"cannot be read: {error.strerror}")
    return _parse(str(path), content, resources)


def _unreadable(name: str, message: str, position: Position | None = None) -> ManifestFile:
    return ManifestFile(name, errors=[ManifestError(name, message, position)])


def _parse(name: str, content: bytes, resources: Mapping[str, Resource]) -> ManifestFile:
    try:
        documents = read_documents(content)
    except DocumentError as error:
        return _unreadable(name, str(error), error.position)
    file = ManifestFile(name)
    for document in documents:
        if isinstance(document, Unreadable):
            message = f"{document.where}: {document.problem}"
            file.errors.append(ManifestError(name, message, document.position, document.where))
            continue
        try:
            _add(file, document, resources)
        except DocumentError as error:
            file.errors.append(ManifestError(name, f"{document.where}: {error}", None, document.where))
    return file


def _add(file: ManifestFile, document: Document, resources: Mapping[str, Resource]) -> None:
    """Decode one document and add it to a file's objects."""
    body = document.body
    kind, version = body.get("kind"), body.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise DocumentError("kind is missing")
    resource = resources.get(kind)
    if resource is None or version not in [each.api_version for each in resource.versions()]:
        _skip(file, document, version, kind)
        return
    item = _decode(resource, _completed(resource, body))
    if item.meta.key in file.objects:
        raise DocumentError(f"{item.meta.key} occurs twice in this file: only the first is used")
    file.objects[item.meta.key] = item
    if unknown := fields_without_effect(item.meta.key, body):
        file.unknown[item.meta.key] = unknown


def _skip(file: ManifestFile, document: Document, version: object, kind: str) -> None:
    """Record an object of a kind that is not read."""
    if not is_meant_for_us(version, kind):
        file.ignored[f"{version}/{kind}"] += 1
        if is_for_gateways(version, document.body):
            message = f"{document.where}: {kind} {version} is not supported"
            file.unsupported.append(ManifestError(file.name, message, None, document.where))
        return
    advice = remedy(version, kind) or "unknown kind"
    name = f"{kind} {version}" if version else f"{kind} without apiVersion"
    message = f"{document.where}: {name} is not read: {advice}"
    file.unread.append(ManifestError(file.name, message, None, document.where))


def _completed(resource: Resource, body: JsonObject) -> JsonObject:
    """Return a document with the defaults that the API server sets."""
    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(name, str) or not name:
        raise DocumentError(f"{resource.kind} without metadata.name (must be a string)")
    namespace = (meta.get("namespace") or "default") if resource.namespaced else ""
    if not isinstance(namespace, str):
        raise DocumentError(f"{resource.kind} {name}: metadata.namespace must be a string")
    if not isinstance(body.get("spec") or {}, dict):
        raise DocumentError(f"{resource.kind} {name}: spec must be a mapping")
    return {**body, "metadata": {**meta, "namespace": namespace, "generation": meta.get("generation") or 1}}


def _decode(resource: Resource, body: JsonObject) -> KubeObject:
    try:
        return resource.decode(body)
    except DECODE_ERRORS as error:
        # Some errors quote the value, so for a Secret show only messages of this program.
        hidden = resource.kind == "Secret" and type(error) is not ValueError
        named = isinstance(error, TypeError | ValueError)  # these are messages of the decoders
        reason = type(error).__name__ if hidden else f"{'' if named else f'{type(error).__name__}: '}{str(error)[:200]}"
        raise DocumentError(f"{resource.kind} {body['metadata']['name']} cannot be read ({reason})") from None


def merge(files: Sequence[ManifestFile]) -> LoadResult:
    """Merge the files. If several files have an object with the same key, the first file wins."""
    holders: dict[ObjectKey, str] = {}
    objects: list[KubeObject] = []
    errors: list[ManifestError] = []
    ignored: Counter[str] = Counter()
    unknown: list[UnknownField] = []
    for file in files:
        errors.extend(file.errors)
        ignored.update(file.ignored)
        for key, item in file.objects.items():
            if (holder := holders.setdefault(key, file.name)) != file.name:
                message = f"{key} is already defined in {holder}, which is used"
                errors.append(ManifestError(file.name, message, None, key))
            else:
                objects.append(item)
                unknown.extend(file.unknown.get(key, ()))
    unread = tuple(error for file in files for error in file.unread)
    unsupported = tuple(error for file in files for error in file.unsupported)
    return LoadResult(tuple(objects), tuple(errors), dict(ignored), unread, unsupported, tuple(unknown), files=holders)
