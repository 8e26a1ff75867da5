"""A row of the table of kinds: everything about one kind that is not in its own three files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any, Literal

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKind
from apisix_ingress.model.kinds.indexes import IndexFunction
from apisix_ingress.model.objects import KubeObject

StatusShape = Literal["", "conditions", "addresses", "document"]
"""What the controller writes into the status of a kind: nothing, a condition, the addresses of the gateways, or what
its translation assesses (`model.assessment`)."""


DERIVED_PROVIDERS: Mapping[str, str] = {"NginxHost": "providers.nginx_host:NginxHostProvider"}
"""Kinds of owners of which no objects exist, each with its provider: hosts, which the Ingresses that name them make."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object.

    `spec`, `translator`, `provider`, `webhook`, `lint` and `unnamed` name objects of higher layers as `module:name`.
    They are imported when they are used (`imported`), so that a start pays only for the kinds it finds objects of.

    Attributes:
        kind: As in manifests.
        group: API group, empty for the core group.
        version: API version.
        plural: Path segment and RBAC resource.
        decode: Raw JSON → trimmed object; raises ValueError, TypeError or KeyError.
        other_versions: API versions that have the same shape, for API servers that don't have `version`.
        namespaced: Whether objects live in a namespace.
        optional: The API server may not know the kind. It is read as soon as its CRD is installed; until then
            `/apis` is asked every few seconds, and nothing else happens.
        never_empty: Every API server has objects of the kind, so that an empty list is confirmed before it is believed.
        urgent: Changes are handled ahead of others: a dead pod leaves the gateways at once.
        indexes: Index name → function that returns the values under which an object is found.
        ranked: Names of those indexes that know who is oldest.
        only: The one object of the kind that is read; None: all of them.
        needs: A kind without whose CRD this one is not read.
        may_be_forbidden: Whether the kind counts as missing while permission to read it was never granted.
        short: Short name for kubectl and our commands, e.g. `ar`.
        description: One sentence for `kubectl explain`; kinds with our own CRD only.
        spec: The pydantic model of `spec`; kinds with our own CRD only.
        spec_required: The webhook denies an object without `spec`, as 1.8 did.
        translator: `(object, view, options) -> Translation`; with `expires` it takes `now` as well. Kinds whose
            provider needs another signature have none.
        expires: Whether a translation depends on the time.
        provider: The subclass of `Provider` that owns the records, or of `DependencyProvider` where many owners may
            depend on one object; empty for other kinds, whose changes go to the providers of the owners directly.
        label: Label `resource` of the metrics that count changes, as in 1.8.
        reconcile_label: The same for metrics that count translations, where 1.8 has another one.
        status: What is written into its status; grants `get` and `patch` of it, too.
        record_prefix: First part of the names of its routes and records, before namespace and name.
        record_names: Kind of record → regular expression for what follows `namespace_name` in its name, so that an
            object is found from its record.
        unnamed: `(object) -> Iterator[(record kind, name)]` for records whose bodies contain no name.
        annotated: Whether annotations of ours are read.
        webhook: `(object, options) -> Iterator[str]`: further warnings of the webhook.
        lint: `(object) -> Iterator[Problem]`: a rule of the command `lint`.
    """

    kind: str
    group: str
    version: str
    plural: str
    decode: Callable[[JsonObject], KubeObject]
    other_versions: tuple[str, ...] = ()
    namespaced: bool = True
    optional: bool = False
    never_empty: bool = False
    urgent: bool = False
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    ranked: frozenset[str] = frozenset()
    only: ObjectKey | None = None
    needs: str = ""
    may_be_forbidden: bool = False
    short: str = ""
    description: str = ""
    spec: str = ""
    spec_required: bool = False
    translator: str = ""
    expires: bool = False
    provider: str = ""
    label: str = ""
    reconcile_label: str = ""
    status: StatusShape = ""
    record_prefix: str = ""
    record_names: Mapping[RecordKind, str] = field(default_factory=dict)
    unnamed: str = ""
    annotated: bool = False
    webhook: str = ""
    lint: str = ""

    @property
    def api_version(self) -> str:
        """`apiVersion` as in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base_path(self) -> str:
        """URL path of the API group version, e.g. `/apis/apisix.apache.org/v2`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, an object or a subresource of it."""
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        parts = [f"{self.base_path}{scope}/{self.plural}", *filter(None, (name, subresource))]
        return "/".join(parts)

    def versions(self) -> Iterator[Resource]:
        """Yield the kind in each of its API versions, the preferred one first."""
        for version in (self.version, *self.other_versions):
            yield replace(self, version=version)

    def without(self, indexes: frozenset[str]) -> Resource:
        """Return the kind without some indexes."""
        kept = {name: function for name, function in self.indexes.items() if name not in indexes}
        return replace(self, indexes=kept, ranked=self.ranked - indexes)

    def restricted(self, only: ObjectKey) -> Resource:
        """Return the kind as it is when one object of it is read."""
        return replace(self, only=only)


@cache
def imported(reference: str) -> Any:
    """Return what a row names as `module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
