"""Reads kubeconfig files: merges them and selects a context, with the semantics of client-go's `clientcmd`.

The first file with a name or a current context wins. A relative path is relative to the file that contains it. Only the
selected entries are validated. The files that they refer to are not read here. Messages name files and fields, never
values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.credential_files import read_file
from apisix_ingress.kube.client.json_depth import DEEPEST
from apisix_ingress.kube.manifests.paths import exists
from apisix_ingress.model.formats.safe_yaml import read_yaml

_UNSUPPORTED = {
    "auth-provider": "use a token, a client certificate or exec",
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), "use credentials of the user to impersonate"),
}
"""Field of a user → remedy. Without these fields, requests would be sent as another user."""


class _Entry(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, entry: object) -> object:
        if not isinstance(entry, dict):
            return entry
        return {name: value for name, value in entry.items() if value is not None}


class Cluster(_Entry):
    """The field `cluster` of an entry of `clusters`."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(_Entry):
    """An environment variable of a credential plugin."""

    name: str
    value: str = ""


class Plugin(_Entry):
    """The field `exec` of a user: a credential plugin."""

    command: str
    api_version: str = Field(alias="apiVersion")
    args: list[str] = []
    env: list[Variable] = []


class User(_Entry):
    """The field `user` of an entry of `users`."""

    client_certificate: str = ""
    client_certificate_data: str = Field(default="", repr=False)
    client_key: str = ""
    client_key_data: str = Field(default="", repr=False)
    token: str = Field(default="", repr=False)
    token_file: str = Field(default="", alias="tokenFile")
    username: str = ""
    password: str = Field(default="", repr=False)
    exec: Plugin | None = None


class Context(_Entry):
    """The field `context` of an entry of `contexts`."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedContext:
    """A context with its cluster and user.

    Attributes:
        files: All kubeconfig files that were read.
        namespace: Namespace of the context; may be empty.
        cluster: The cluster.
        cluster_place: File and name of the cluster, for messages.
        user: The user; without fields if the context has no user.
        user_place: File and name of the user, for messages.
    """

    files: tuple[Path, ...]
    namespace: str
    cluster: Cluster
    cluster_place: Place
    user: User = field(repr=False)
    user_place: Place


class Place(NamedTuple):
    """Where an entry is."""

    file: Path
    entry: str

    def field(self, name: str) -> str:
        """Return the name of a field of the entry, for messages."""
        return f"kubeconfig {self.file}: {self.entry}.{name}"

    def path(self, name: str) -> Path:
        """Return the path of a file that the entry refers to."""
        return Path(os.path.normpath(self.file.parent / name))


class _Source(NamedTuple):
    place: Place
    content: Mapping[str, Any]


_Entries = Mapping[str, _Source]
_Model = TypeVar("_Model", bound=_Entry)


def read_context(paths: str, context: str = "") -> ResolvedContext:
    """Read a context from kubeconfig files.

    Args:
        paths: The files, separated like in $KUBECONFIG. Files that do not exist are ignored, except if none exists.
        context: The name of the context; empty: the current one.

    Raises:
        ConfigError: A file is malformed, or something is missing or not supported.
    """
    files = _existing(paths)
    contents = [(file, _content(file)) for file in files]
    contexts, clusters, users = (_merged(contents, kind) for kind in ("contexts", "clusters", "users"))
    source = _selected(contexts, context or _current(contents), paths, is_current=not context)
    chosen = _parsed(Context, source, "context")
    cluster = clusters.get(chosen.cluster)
    if cluster is None:
        raise ConfigError(f"{source.place.field('cluster')}: no cluster {chosen.cluster!r}; {_names(clusters)}")
    user = users.get(chosen.user) if chosen.user else _Source(Place(files[0], "users[]"), {})
    if user is None:
        raise ConfigError(
            f"kubeconfig {paths}: {source.place.entry} uses the user {chosen.user!r}, which does not exist;"
            f" {_names(users)}"
        )
    _check_supported(user)
    return ResolvedContext(
        files,
        chosen.namespace,
        _parsed(Cluster, cluster, "cluster"),
        cluster.place,
        _parsed(User, user, "user"),
        user.place,
    )


def _existing(paths: str) -> tuple[Path, ...]:
    try:
        files = tuple(Path(name).expanduser() for name in paths.split(os.pathsep) if name)
        found = tuple(path for path in files if exists(path))
    except (OSError, RuntimeError) as error:  # RuntimeError: `~` of an unknown user
        reason = error.strerror if isinstance(error, OSError) else "unknown user in the path"
        raise ConfigError(f"kubeconfig {paths}: {reason}; set the path with --kubeconfig") from None
    if not found:
        raise ConfigError(f"kubeconfig {paths}: no such file; set the path with --kubeconfig")
    return found


def _content(path: Path) -> Mapping[str, Any]:
    raw = read_file(path, f"kubeconfig {path}")
    try:
        content = orjson.loads(raw)  # YAML does not combine the escaped surrogate pairs of JSON
    except orjson.JSONDecodeError:
        content = _yaml(raw, path)
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: the top level must be a mapping")
    return content


def _yaml(raw: bytes, path: Path) -> object:
    message = f"kubeconfig {path}: not valid YAML of one document, or its aliases repeat too much"
    try:
        documents = [*read_yaml(raw, deepest=DEEPEST)] or [None]
    except ValueError:  # its message could quote a value
        raise ConfigError(message) from None
    if len(documents) > 1:
        raise ConfigError(message)
    return documents[0]


def _current(contents: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    for path, content in contents:
        name = content.get("current-context") or ""
        if not isinstance(name, str):
            raise ConfigError(f"kubeconfig {path}: current-context: must be a string")
        if name:
            return name
    return ""


def _merged(contents: Sequence[tuple[Path, Mapping[str, Any]]], kind: str) -> _Entries:
    """Return name → entry; the first entry with a name wins."""
    merged: dict[str, _Source] = {}
    for path, content in contents:
        for name, entry in _named(path, content.get(kind) or [], kind):
            merged.setdefault(name, _Source(Place(path, f"{kind}[{name}]"), entry))
    return merged


def _named(path: Path, entries: object, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(entries, list):
        raise ConfigError(f"kubeconfig {path}: {kind}: must be a list")
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise ConfigError(f"kubeconfig {path}: {kind}[{index}]: must be a mapping with a name, which is a string")
        yield name, entry


def _selected(contexts: _Entries, name: str, paths: str, *, is_current: bool) -> _Source:
    if found := contexts.get(name):
        return found
    if not name:
        raise ConfigError(
            f"kubeconfig {paths}: current-context is not set: set it, or select a context with kubernetes.context"
        )
    field = "current-context: " if is_current else ""
    raise ConfigError(f"kubeconfig {paths}: {field}no context {name!r}; {_names(contexts)}")


def _names(entries: _Entries) -> str:
    return f"it has: {', '.join(entries) or 'none'}"


def _check_supported(user: _Source) -> None:
    fields = user.content.get("user")
    for name, remedy in _UNSUPPORTED.items():
        if isinstance(fields, dict) and fields.get(name):
            raise ConfigError(f"{user.place.field(name)}: {name} is not supported: {remedy}")


def _parsed(model: type[_Model], source: _Source, kind: str) -> _Model:
    fields = source.content.get(kind)
    try:
        return model.model_validate({} if fields is None else fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        name = ".".join(map(str, first["loc"])) or kind
        raise ConfigError(f"{source.place.field(name)}: {first['msg']}") from None
