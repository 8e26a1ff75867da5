"""Names, ids and ownership marks of records: the only place where they are generated.

They equal those of 1.8 (v1-behaviour.md §2.1), so that a gateway filled by 1.8 is adopted without a write: an id is the
CRC-32 of the record's name in lower-case hex, without padding.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Literal

from apisix_ingress.model.formats.patterns import ValuePattern

Granularity = Literal["endpoint", "service"]
ConsumerNames = Literal["compatible", "unambiguous"]

DESC = "Created by apisix-ingress-controller, DO NOT modify it manually"
MANAGED_BY = "managed-by"
MANAGED_BY_VALUE = "apisix-ingress-controller"
CONTROLLER_LABEL = "apisix-ingress/controller"
DEFAULT_CONTROLLER = "apisix-ingress"
LABEL_VALUE_LIMIT = 256
NAME_LIMIT = 256
"""Maximum length of a record's `name` (APISIX core schema); names of objects may result in longer ones."""

_KEPT = NAME_LIMIT - 17
"""Length of the kept prefix of a longer name; a tilde and a hash of the full name follow."""

WIDE = 16
"""Length of a wide id; a short id has at most eight characters."""

INGRESS = "ing"
"""Prefix of route names of Ingresses. A namespace may have this name too."""

NGINX = "ingress-nginx:"
"""Prefix of record names of ingress-nginx hosts. No namespace can have this name."""

_OF_INGRESS = ValuePattern(r"[a-z0-9.-]+_[0-9a-f]{1,8}")
"""What follows `ing_<namespace>_` in the route name of an Ingress: its name and the short id of host and path."""

_CUT = ValuePattern(r"~[0-9a-f]{16}")

_PLAIN_UPSTREAM = ValuePattern(r"([^_~:]+)_([^_~:]+)_([1-9][0-9]*)")


def short_id(name: str) -> str:
    """Return the CRC-32/IEEE of the name in lower-case hex without padding; an empty name has an empty id."""
    return format(zlib.crc32(name.encode()), "x") if name else ""


def wide_id(name: str) -> str:
    """Return the 16-hex id for a name whose short id is taken by another name of its kind."""
    return hashlib.sha256(name.encode()).hexdigest()[:WIDE]


def truncated(name: str) -> str:
    """Return the name to write to a record: shortened if it is too long for a gateway. Ids use the whole name."""
    return name if len(name) <= NAME_LIMIT else f"{name[:_KEPT]}~{wide_id(name)}"


def is_cut(name: str) -> bool:
    """Return whether the name in a record is shortened."""
    return len(name) == NAME_LIMIT and _CUT.fits(name[_KEPT:])


def is_id_of(id_: str, name: str) -> bool:
    """Return whether an id belongs to the name in a record. A shortened name matches any short id."""
    if id_ in (short_id(name), wide_id(name)):
        return True
    return is_cut(name) and (len(id_) < WIDE or id_ == name[-WIDE:])


def owner_labels(controller: str, labels: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the record labels that mark a record as created by this controller, added to the object's labels.

    The mark overrides a label with the same name. Values that the Admin API rejects (empty, longer than 256, with white
    space) are omitted: labels are informational. A controller with a name other than the default adds that name, so
    that two controllers on one gateway can distinguish their records.
    """
    kept = {}
    if labels:
        kept = {key: value for key, value in labels.items() if _is_record_label(value)}
        kept.pop(CONTROLLER_LABEL, None)
    kept[MANAGED_BY] = MANAGED_BY_VALUE
    if controller != DEFAULT_CONTROLLER:
        kept[CONTROLLER_LABEL] = controller
    return kept


def _is_record_label(value: str) -> bool:
    return 0 < len(value) <= LABEL_VALUE_LIMIT and not any(char.isspace() for char in value)


def is_owned(labels: object, controller: str) -> bool:
    """Return whether the controller with this name created a record with these labels."""
    if not isinstance(labels, dict) or labels.get(MANAGED_BY) != MANAGED_BY_VALUE:
        return False
    return bool(labels.get(CONTROLLER_LABEL, DEFAULT_CONTROLLER) == controller)


def route_prefix(namespace: str, name: str, first: str = "") -> str:
    """Return the common prefix of the names of all routes of an object (object names contain no underscore).

    `first` is the `record_prefix` of its kind; an ApisixRoute has none. Two objects with very long names that
    begin with the same characters share a prefix.
    """
    return f"{object_name(namespace, name, first)}_"[:_KEPT]


def route_name(namespace: str, name: str, rule: str) -> str:
    """Return the name of the route for an http rule of an ApisixRoute."""
    return f"{namespace}_{name}_{rule}"


def is_of_ingress(namespace: str, rule: str) -> bool:
    """Return whether the route name of an ApisixRoute rule may equal the route name of an Ingress elsewhere.

    Names of objects contain no underscore, so only the namespace that is named like the prefix is affected.
    """
    return namespace == INGRESS and _OF_INGRESS.fits(rule)


def stream_route_name(namespace: str, name: str, rule: str) -> str:
    """Return the name of the stream route for a stream rule; UDP has the same suffix."""
    return f"{namespace}_{name}_{rule}_tcp"


def ingress_prefix(namespace: str, name: str) -> str:
    """Return the common prefix of the names of all routes of an Ingress, like `route_prefix`."""
    return route_prefix(namespace, name, INGRESS)


def ingress_route_name(namespace: str, name: str, host: str, path: str) -> str:
    """Return the name of the route for one host and path of an Ingress."""
    return f"{INGRESS}_{namespace}_{name}_{short_id(host + path)}"


def nginx_prefix(host: str) -> str:
    """Return the common prefix of the names of all routes of a host of ingress-nginx."""
    return f"{NGINX}_{host}_"[:_KEPT]


def nginx_name(host: str, part: str) -> str:
    """Return the name of a record of an ingress-nginx host; no namespace can have this prefix."""
    return f"{NGINX}_{host}_{part}"


def nginx_limits(namespace: str, name: str) -> str:
    """Return the name of the plugin config with the limits of an Ingress of ingress-nginx."""
    return f"{NGINX}{namespace}_{name}_limits"


def nginx_data(host: str, namespace: str, name: str, use: str) -> str:
    """Return the name of the plugin config with data of a Secret or ConfigMap for an ingress-nginx host."""
    return nginx_name(host, f"{namespace}_{name}_{use}")


def nginx_client_certificate(namespace: str, secret: str, *, verified: bool = False) -> str:
    """Return the name of the record with the client certificate for ingress-nginx backends, verified or not."""
    return f"{NGINX}{namespace}_{secret}_client{'_verified' if verified else ''}"


def service_upstream_name(
    namespace: str,
    service: str,
    port: int,
    *,
    subset: str = "",
    granularity: Granularity = "endpoint",
    variant: str = "",
) -> str:
    """Return the name of the upstream for a Service port; `port` is the Service's port number."""
    name = f"{namespace}_{service}_{subset}_{port}" if subset else f"{namespace}_{service}_{port}"
    if granularity == "service":
        name += "_service"
    return f"{name}_~{variant}" if variant else name


def service_port_of(name: str) -> tuple[str, str, int] | None:
    """Return namespace, Service and port in the name of an upstream whose nodes are all endpoints of that port.

    Names with a subset, a variant or the granularity `service` have other nodes: None, as for any other name.
    """
    found = _PLAIN_UPSTREAM.fullmatch(name) if len(name) < NAME_LIMIT else None
    return (found[1], found[2], int(found[3])) if found else None


def object_name(namespace: str, name: str, first: str = "") -> str:
    """Return the name of the single record of an object: external upstream, plugin config, ssl, global rule.

    If several kinds generate such records, `first` is the `record_prefix` of the kind.
    """
    return f"{first}_{namespace}_{name}" if first else f"{namespace}_{name}"


def consumer_name(namespace: str, name: str, style: ConsumerNames = "compatible") -> str:
    """Return the username of an ApisixConsumer.

    `compatible` is the name in 1.8: dashes become underscores, so `team/a-admin` and `team-a/admin` share a username.
    `unambiguous` keeps the dashes. Names of namespaces and objects contain no underscore, so the only one
    separates namespace and name, and a username with two underscores can only be a compatible one.
    """
    username = f"{namespace}_{name}"
    return username if style == "unambiguous" else username.replace("-", "_")
