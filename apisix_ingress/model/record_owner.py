"""Finds the object that a record was generated for, from the record alone.

Used in output, and to find the namespace that held a host before a restart if its objects still name the host.

`names` generates the names; namespaces and object names contain no underscore, so it separates the parts.
"""

from __future__ import annotations

from functools import cache

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.table import PREFIXES, RESOURCES
from apisix_ingress.model.names import INGRESS, MANAGED_BY, MANAGED_BY_VALUE, NGINX, is_cut, object_name


def origin(key: RecordKey, body: FrozenJson) -> ObjectKey | None:
    """Return the owner in a record, or None if it contains none or was not created by this program.

    A certificate contains its Secret, an upstream its Service or ApisixUpstream.
    """
    labels = body.get("labels")
    if not isinstance(labels, dict) or labels.get(MANAGED_BY) != MANAGED_BY_VALUE:
        return None
    if key.kind == "ssls":
        return _secret(labels)
    name = body.get("name")
    return origin_of_name(key.kind, name) if isinstance(name, str) else None


def origin_of_name(kind: RecordKind, name: str) -> ObjectKey | None:
    """Return the owner in the name of a record, or None if it contains none.

    A route of an ApisixRoute in a namespace `ing` may look like one of an Ingress; its body shows the difference.
    """
    if is_cut(name):
        return None
    found = ((owner, pattern.fullmatch(name)) for owner, pattern in _patterns(kind))
    return next((ObjectKey(owner, match[1], match[2]) for owner, match in found if match), None)


def namespace_of_name(kind: RecordKind, name: str) -> str:
    """Return the namespace in the name of a record, even if the name is shortened; empty if there is no namespace.

    A shortened name with the prefix of a kind, such as Ingress, is treated as a name of that kind.
    """
    first, second, *_ = (*name.split("_"), "")
    if first in GATEWAY_KINDS:
        return second
    if not is_cut(name):
        owner = origin_of_name(kind, name)
        return owner.namespace if owner else ""
    prefixes = {row.record_prefix for row in RESOURCES.values() if kind in row.record_names}
    return second if first in prefixes else first


_NAMESPACE = "([^_A-Z:]+)"
"""Never a prefix: except for `ing`, which 1.8 uses, prefixes begin with a capital letter."""


@cache
def _patterns(kind: RecordKind) -> tuple[tuple[str, ValuePattern], ...]:
    """Return the kinds of objects that own records of a kind, with the name patterns in the table."""
    return tuple(
        (
            row.kind,
            ValuePattern("(?s)" + object_name(_NAMESPACE, "([^_]+)", row.record_prefix) + row.record_names[kind]),
        )
        for row in RESOURCES.values()
        if kind in row.record_names
    )


def source_of(kind: RecordKind, name: str) -> str:
    """Return the owner in the name of a record as namespace/name, or its namespace; empty if there is no namespace."""
    if name.startswith(NGINX):
        return ""
    owner = origin_of_name(kind, name)
    if owner is not None:
        return f"{owner.namespace}/{owner.name}"
    first, _, rest = name.partition("_")
    if first in PREFIXES and first != INGRESS:
        return source_of(kind, rest)
    namespace = namespace_of_name(kind, name)
    return f"{namespace}/" if namespace else ""


def secrets_of(kind: RecordKind, body: FrozenJson) -> tuple[str, ...]:
    """Return the Secrets that the labels of a record name, as namespace/name.

    A certificate names its Secret. It also names that of its client CA, and an upstream that of its client certificate,
    if the Secret is in another namespace (`client_labels`).
    """
    labels = body.get("labels")
    if not isinstance(labels, dict) or not (kind == "ssls" or (kind == "upstreams" and "tls" in body)):
        return ()
    found = (_secret(labels) if kind == "ssls" else None, _secret(labels, _CLIENT))
    return tuple(f"{secret.namespace}/{secret.name}" for secret in found if secret is not None)


def client_labels(namespace: str, name: str) -> dict[str, str]:
    """Return the labels of a record with the client certificate or client CA of a Secret in another namespace."""
    return dict(zip(_CLIENT, (namespace, name), strict=True))


_CLIENT = ("meta_client_secret_namespace", "meta_client_secret_name")
_SERVER = ("meta_secret_namespace", "meta_secret_name")


def _secret(labels: FrozenJson, fields: tuple[str, str] = _SERVER) -> ObjectKey | None:
    namespace, name = map(labels.get, fields)
    return ObjectKey("Secret", str(namespace), str(name)) if namespace and name else None
