"""What a manifest holds that has no effect: objects of kinds that are not read, fields that a kind does not have.

Each comes with the remedy. What is read is decided in `manifests`; nothing here opens a file or logs.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from crds import KINDS, unknown_fields

_ALIKE = 0.85
"""How much alike kinds must be spelt: ServiceAccount is no misspelt Service."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that does nothing, since the kind does not have it.

    Attributes:
        path: e.g. `spec.http[0].match.host`.
        nearest: The known field that is spelt most alike, None if none is.
    """

    key: ObjectKey
    path: str
    nearest: str | None

    @property
    def message(self) -> str:
        """The sentence for people."""
        return f"unknown field, did you mean {self.nearest}?" if self.nearest else "unknown field, it does nothing"


def fields_without_effect(key: ObjectKey, body: JsonObject) -> tuple[UnknownField, ...]:
    """Return the fields of an object that its kind does not have; only custom resources are looked at.

    The API server prunes such fields and kubectl warns of them; nobody does so for a file.
    """
    if key.kind not in KINDS:
        return ()
    return tuple(UnknownField(key, path, nearest) for path, nearest in unknown_fields(key.kind, body.get("spec")))


def is_meant_for_us(api_version: object, kind: str) -> bool:
    """Say whether an object that is not read was surely meant to be: its group or its kind is one of ours."""
    return str(api_version).rpartition("/")[0] == CUSTOM_GROUP or kind in KINDS


def remedy(api_version: object, kind: str) -> str:
    """Return what to do about an object that is not read, empty if there is nothing to do."""
    group = str(api_version).rpartition("/")[0]
    known = RESOURCES.get(kind)
    if known is not None and group == known.group:
        return f"convert it to {known.api_version}"
    if kind in KINDS:
        return f"did you mean apiVersion: {RESOURCES[kind].api_version}?"
    alike = [name for name, resource in RESOURCES.items() if resource.group == group]
    near = difflib.get_close_matches(kind, alike, n=1, cutoff=_ALIKE)
    return f"did you mean {near[0]}?" if near else ""
