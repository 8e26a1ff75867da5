"""Keys: identifiers of objects, indexes and records inside the program. No logic."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

RecordKind: TypeAlias = Literal[
    "routes",
    "stream_routes",
    "upstreams",
    "ssls",
    "consumer_groups",
    "consumers",
    "plugin_configs",
    "protos",
    "secrets",
    "global_rules",
    "plugin_metadata",
]

RECORD_KINDS: tuple[RecordKind, ...] = (
    "ssls",
    "secrets",
    "upstreams",
    "consumer_groups",
    "consumers",
    "protos",
    "plugin_configs",
    "plugin_metadata",
    "global_rules",
    "routes",
    "stream_routes",
)
"""Every record kind, in the order of lists and output."""


class ObjectKey(NamedTuple):
    """A Kubernetes object: the reconcile key. `namespace` is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Render as users write it: `ApisixRoute default/web`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def reference(self) -> dict[str, str]:
        """Return the object as JSON documents show it."""
        return {"kind": self.kind, "namespace": self.namespace, "name": self.name}

    @property
    def place(self) -> str:
        """The name with its namespace: `default/web`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def namespace_of(key: ObjectKey) -> str:
    """Return the namespace of an object, for queues in which namespaces take turns."""
    return key.namespace


class IndexKey(NamedTuple):
    """One value of one index over the objects of a kind, e.g. the slices of a Service."""

    kind: str
    by: str
    value: str


class RecordKey(NamedTuple):
    """A record in a gateway: its Admin API resource and id."""

    kind: RecordKind
    id: str

    def __str__(self) -> str:
        """Render as the Admin API path: `routes/46eb0e41`."""
        return f"{self.kind}/{self.id}"


Read: TypeAlias = ObjectKey | IndexKey
"""An object or index value that a translation looked up, whether or not it exists. A change queues the owner."""
