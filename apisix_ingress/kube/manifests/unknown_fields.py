"""Finds content of manifests without effect: objects of kinds that are not read, and unknown fields.

Each finding has a remedy. `loader` decides which kinds are read; nothing here opens a file or logs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from apisix_ingress.model.json import FrozenJson, JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_GROUP
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from crds import KINDS, nearest_name, published_schemas, unknown_fields

_ALIKE = 0.85
"""Minimum similarity of two kind names for a suggestion; ServiceAccount is not a misspelled Service."""

_GATEWAYS = tuple(
    f".{domain}"
    for domain in (
        "containo.us", "envoyproxy.io", "f5.com", "gateway.networking.x-k8s.io", "getambassador.io", "haproxy.org",
        "istio.io", "kgateway.dev", "konghq.com", "kuadrant.io", "linkerd.io", "networking.gke.io", "nginx.org",
        "projectcontour.io", "solo.io",
        "traefik.io",
    )
)  # fmt: skip
"""The ends of the API groups of other gateways, and of experimental kinds of the Gateway API."""

_GROUPS = frozenset({"apps", "extensions", *(row.group for row in RESOURCES.values() if row.group != CUSTOM_GROUP)})
"""The API groups in which a kind with the name of one that is read is a mistake."""


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


_TOP = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_META = frozenset(
    {
        "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
        "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
        "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip


def fields_without_effect(key: ObjectKey, body: JsonObject) -> tuple[UnknownField, ...]:
    """Return the fields of an object that its kind does not have; of kinds without a schema, only those of metadata.

    The API server prunes or rejects such fields; for a file, only this function reports them.
    """
    has_spec = key.kind in KINDS or key.kind in published_schemas()
    return tuple(
        UnknownField(key, path, nearest)
        for path, nearest in (
            *(_unknown(body, _TOP, "") if has_spec else ()),
            *_unknown(mapping_in(body.get("metadata")), _META, "metadata."),
            *unknown_fields(key.kind, body.get("spec")),
        )
    )


def _unknown(given: FrozenJson, known: frozenset[str], path: str) -> Iterator[tuple[str, str | None]]:
    left = known - given.keys()
    return ((f"{path}{name}", nearest_name(str(name), left)) for name in given if name not in known)


def is_meant_for_us(api_version: object, kind: str) -> bool:
    """Return whether an object that is not read was meant for this program.

    Its group or kind is one of its own, its kind is read in another version, or its kind is probably misspelled.
    """
    group = _group(api_version)
    known = RESOURCES.get(kind)
    in_other_version = known is not None and (str(api_version) in known.removed or group == known.group != "")
    return group == CUSTOM_GROUP or kind in KINDS or in_other_version or bool(remedy(api_version, kind))


def is_for_gateways(api_version: object, body: JsonObject) -> bool:
    """Return whether an object configures a gateway, so that a user expects this program to check it.

    It belongs to the Gateway API or to another controller, or it refers to an object of the Gateway API.
    """
    group = _group(api_version)
    spec = mapping_in(body.get("spec"))
    references = [*list_in(spec.get("parentRefs")), *list_in(spec.get("targetRefs")), spec.get("targetRef")]
    groups = {group, *(mapping_in(each).get("group") for each in references)}
    return GATEWAY_GROUP in groups or f".{group}".endswith(_GATEWAYS)


def remedy(api_version: object, kind: str) -> str:
    """Return what to do about an object that is not read; empty if nothing."""
    group = _group(api_version)
    known = RESOURCES.get(kind)
    if known is not None and str(api_version) in known.removed:
        return f"Kubernetes {known.removed[str(api_version)]} removed this version; convert it to {known.api_version}"
    if known is not None and group == known.group:
        return f"convert it to {known.api_version}"
    if kind in KINDS or (known is not None and known.group and (group in _GROUPS or str(api_version) in _GROUPS)):
        return f"did you mean apiVersion: {RESOURCES[kind].api_version}?"
    alike = {name.lower(): name for name, resource in RESOURCES.items() if resource.group == group}
    near = difflib.get_close_matches(kind.lower(), alike, n=1, cutoff=_ALIKE)
    return f"did you mean {alike[near[0]]}?" if near else ""


def _group(api_version: object) -> str:
    return str(api_version).rpartition("/")[0]
