"""Finds content of manifests without effect: objects of kinds that are not read, and unknown fields.

Each finding has a remedy. `loader` decides which kinds are read; nothing here opens a file or logs.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_GROUP
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from crds import KINDS, unknown_fields

_ALIKE = 0.85
"""Minimum similarity of two kind names for a suggestion; ServiceAccount is not a misspelled Service."""

_EXPERIMENTAL_GROUP = "gateway.networking.x-k8s.io"


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field without effect, because the kind does not have it.

    Attributes:
        path: e.g. `spec.http[0].match.host`.
        nearest: The known field with the most similar name; None if no name is similar.
    """

    key: ObjectKey
    path: str
    nearest: str | None

    @property
    def message(self) -> str:
        """The message."""
        return f"unknown field, did you mean {self.nearest}?" if self.nearest else "unknown field; it has no effect"


def fields_without_effect(key: ObjectKey, body: JsonObject) -> tuple[UnknownField, ...]:
    """Return the fields of a custom resource that its kind does not have; empty for other kinds.

    The API server prunes such fields and kubectl warns about them; for a file, only this function reports them.
    """
    if key.kind not in KINDS:
        return ()
    return tuple(UnknownField(key, path, nearest) for path, nearest in unknown_fields(key.kind, body.get("spec")))


def is_meant_for_us(api_version: object, kind: str) -> bool:
    """Return whether an object that is not read was meant for this program.

    Its group or kind is one of its own, or its kind is read in another version.
    """
    group = str(api_version).rpartition("/")[0]
    known = RESOURCES.get(kind)
    in_other_version = known is not None and (str(api_version) in known.removed or group == known.group != "")
    return group == CUSTOM_GROUP or kind in KINDS or in_other_version


def is_for_gateways(api_version: object) -> bool:
    """Return whether an object belongs to the Gateway API, so that a user expects this program to check it."""
    return str(api_version).rpartition("/")[0] in (GATEWAY_GROUP, _EXPERIMENTAL_GROUP)


def remedy(api_version: object, kind: str) -> str:
    """Return what to do about an object that is not read; empty if nothing."""
    group = str(api_version).rpartition("/")[0]
    known = RESOURCES.get(kind)
    if known is not None and str(api_version) in known.removed:
        return f"Kubernetes {known.removed[str(api_version)]} removed this version; convert it to {known.api_version}"
    if known is not None and group == known.group:
        return f"convert it to {known.api_version}"
    if kind in KINDS:
        return f"did you mean apiVersion: {RESOURCES[kind].api_version}?"
    alike = [name for name, resource in RESOURCES.items() if resource.group == group]
    near = difflib.get_close_matches(kind, alike, n=1, cutoff=_ALIKE)
    return f"did you mean {near[0]}?" if near else ""
