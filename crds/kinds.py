"""The kinds that have a CRD in this package: the rows of the table of kinds with a `spec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal

from apisix_ingress.model.kinds.resource import Resource, imported
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from crds.v2.common import Spec

GROUP = CUSTOM_GROUP
VERSION = "v2"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object.

    Attributes:
        name: e.g. `ApisixRoute`.
        plural: as in the URL, e.g. `apisixroutes`.
        short: the short name for kubectl, e.g. `ar`.
        model: returns the model of `spec`, which is imported with the first object of the kind.
        description: one sentence for `kubectl explain`.
        namespaced: whether objects live in a namespace.
    """

    name: str
    plural: str
    short: str
    model: Callable[[], type[Spec]]
    description: str
    namespaced: bool = True

    @property
    def spec(self) -> type[Spec]:
        """The model of `spec`."""
        return self.model()

    @property
    def scope(self) -> Literal["Namespaced", "Cluster"]:
        """The scope in the notation of CRDs."""
        return "Namespaced" if self.namespaced else "Cluster"


def _kind(row: Resource) -> Kind:
    return Kind(row.kind, row.plural, row.short, partial(imported, row.spec), row.description, row.namespaced)


KINDS: Mapping[str, Kind] = MappingProxyType({kind: _kind(row) for kind, row in RESOURCES.items() if row.spec})
"""Kind → its row."""
