"""A row of the table of kinds: everything about a kind that is not in its own three files."""

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
"""What the controller writes into the status of a kind: nothing, a condition, the addresses of the gateways, or
the assessment from its translation (`model.assessment`)."""


DERIVED_PROVIDERS: Mapping[str, str] = {"NginxHost": "providers.nginx.host:NginxHostProvider"}
"""Kinds of owners that are not Kubernetes objects → provider: hosts, which exist if an Ingress names them."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object.

    `spec`, `translator`, `provider`, `webhook`, `lint` and `unnamed` name objects of higher layers as `module:name`.
    They are imported on first use (`imported`), so that a start loads only kinds of which objects exist.

    Attributes:
        kind: As in manifests.
        group: API group, empty for the core group.
        version: API version.
        plural: Path segment and RBAC resource.
        decode: Raw JSON → trimmed object; raises ValueError, TypeError or KeyError.
        other_versions: API versions that have the same shape, for API servers without `version`.
        removed: API versions that API servers do not serve any more → the release that removed them.
        namespaced: Whether objects live in a namespace.
        optional: The API server may not know the kind. It is read as soon as its CRD is installed; until then
            `/apis` is requested every few seconds, and nothing else happens.
        never_empty: Every API server has objects of the kind, so an empty list is confirmed by a second one.
        urgent: Changes are handled before others, so that a dead Pod is removed from the gateways immediately.
        indexes: Index name → function that returns the values under which an object is found.
        ranked: Names of the indexes that are ordered by age.
        only: The only object of the kind to watch; None: all of them.
        labels: Label selector of the objects to watch; empty: all of them.
        on_demand: Whether each object is read, by its name, only while a translation refers to it.
        needs: A kind whose CRD must be installed for this kind to be watched.
        may_be_forbidden: Whether the kind counts as missing while permission to read it was never granted.
        short: Short name for kubectl and the commands, e.g. `ar`.
        description: One sentence for `kubectl explain`; kinds with a CRD of this project only.
        spec: The pydantic model of `spec`; kinds with a CRD of this project only.
        spec_required: The webhook denies an object without `spec`, as 1.8 did.
        translator: `(object, view, options) -> Translation`; with `expires` it takes `now` as well. Kinds whose
            provider needs another signature have none.
        expires: Whether a translation depends on the time.
        provider: The subclass of `Provider` that owns the records, or of `DependencyProvider` where many owners may
            depend on one object; empty for other kinds, whose changes go to the providers of the owners directly.
        label: Label `resource` of the metrics that count changes, as in 1.8.
        reconcile_label: The same label for metrics that count translations, if 1.8 used a different value.
        status: What is written to its status; also grants `get` and `patch` on it.
        addressed: Whether its status has the addresses of the gateways (`status.loadBalancer.ingress`).
        record_prefix: First part of the names of its routes and records, before namespace and name. It begins with a
            capital letter, so that no namespace has the same name; only that of Ingress, as in 1.8, does not.
        record_names: Kind of record → regular expression for what follows `namespace_name` in its name, so that an
            object is found from its record.
        unnamed: `(object) -> Iterator[(record kind, name)]` for records whose bodies contain no name.
        annotated: Whether annotations of this controller are read.
        webhook: `(object, options) -> Iterator[str]`: further warnings of the webhook.
        lint: `(object) -> Iterator[Problem]`: a rule of the command `lint`.
    """

    kind: str
    group: str
    version: str
    plural: str
    decode: Callable[[JsonObject], KubeObject]
    other_versions: tuple[str, ...] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    namespaced: bool = True
    optional: bool = False
    never_empty: bool = False
    urgent: bool = False
    indexes: Mapping[str, IndexFunction] = field(default_factory=dict)
    ranked: frozenset[str] = frozenset()
    only: ObjectKey | None = None
    labels: str = ""
    on_demand: bool = False
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
    addressed: bool = False
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
        """Return the kind restricted to a single object."""
        return replace(self, only=only)


@cache
def imported(reference: str) -> Any:
    """Import what a row names as `module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
