"""Names of manifests, and their common fields."""

from __future__ import annotations

from hashlib import sha256

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from translation.nginx.options import CATCH_ALL

_GATEWAY = "gateway.networking.k8s.io/v1"
_NATIVE = "apisix.apache.org/v2"

_DIGITS = 32
"""Hexadecimal digits of a digest: enough that two hosts with the same one cannot be found."""


_ANY_HOST, _WILDCARD, _DIGEST = "any-host", "wildcard.", "sha256."
_RESERVED = frozenset({_ANY_HOST, "shared"})
"""Names that are not the name of the host: `shared` is the file of objects without a host."""

_NAME = ValuePattern(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", longest=200)
"""Names that Kubernetes accepts, with room for the suffixes of objects."""


def object_name(host: str) -> str:
    """Return the name of the objects and the file of a host; two hosts never have the same name.

    A host whose name is too long, is not a DNS name, or looks like the name of another host, gets a digest.
    """
    if host == CATCH_ALL:
        return _ANY_HOST
    bare = host.removeprefix("*.")
    is_plain = _NAME.fits(bare) and bare not in _RESERVED and not bare.startswith((_WILDCARD, _DIGEST))
    if not is_plain:
        return f"{_DIGEST}{sha256(host.encode(errors='backslashreplace')).hexdigest()[:_DIGITS]}"
    return bare if bare == host else f"{_WILDCARD}{bare}"


def manifest(kind: str, namespace: str, name: str, spec: JsonObject, **metadata: JsonObject) -> JsonObject:
    """Return an object."""
    return {
        "apiVersion": _NATIVE if kind.startswith("Apisix") else _GATEWAY,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }
