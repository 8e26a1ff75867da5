"""Names, ids and ownership marks of records: the only place where they are generated.

They equal those of 1.8 (v1-behaviour.md §2.1), so that a gateway filled by 1.8 is adopted without a write: an id is the
CRC-32 of the record's name in lower-case hex, without padding.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from typing import Literal

Granularity = Literal["endpoint", "service"]
ConsumerNames = Literal["compatible", "unambiguous"]

DESC = "Created by apisix-ingress-controller, DO NOT modify it manually"
MANAGED_BY = "managed-by"
MANAGED_BY_VALUE = "apisix-ingress-controller"
CONTROLLER_LABEL = "apisix-ingress/controller"
DEFAULT_CONTROLLER = "apisix-ingress"
LABEL_VALUE_LIMIT = 256
NAME_LIMIT = 256
"""Characters of a record's `name` that a gateway takes (APISIX core schema); names of objects may make longer ones."""

_KEPT = NAME_LIMIT - 17
"""What stays of a longer name; the rest is a tilde and a hash of the whole."""

WIDE = 16
"""Characters of a wide id; a short one has eight at most."""

INGRESS = "ing"
"""What names of the routes of Ingresses begin with. It may be the name of a namespace as well."""

NGINX = "ingress-nginx:"
"""What names of the records of hosts of ingress-nginx begin with. No namespace can have this name."""

_OF_INGRESS = re.compile(r"[a-z0-9.-]+_[0-9a-f]{1,8}")
"""What follows namespace and name in the name of an Ingress' route: the Ingress, and the short id of host and path."""

_CUT = re.compile(r"~[0-9a-f]{16}")


def short_id(name: str) -> str:
    """Return the CRC-32/IEEE of the name in lower-case hex without padding; an empty name has an empty id."""
    return format(zlib.crc32(name.encode()), "x") if name else ""


def wide_id(name: str) -> str:
    """Return the 16-hex id for a name whose short id is taken by another name of its kind."""
    return hashlib.sha256(name.encode()).hexdigest()[:WIDE]


def told(name: str) -> str:
    """Return the name to write to a record: shortened if it is too long for a gateway. Ids use the whole name."""
    return name if len(name) <= NAME_LIMIT else f"{name[:_KEPT]}~{wide_id(name)}"


def is_cut(name: str) -> bool:
    """Say whether the name in a record is only the beginning of its full name."""
    return len(name) == NAME_LIMIT and _CUT.fullmatch(name, _KEPT) is not None


def is_id_of(id_: str, name: str) -> bool:
    """Say whether an id belongs to the name in a record. For a shortened name, any short id may."""
    if id_ in (short_id(name), wide_id(name)):
        return True
    return is_cut(name) and (len(id_) < WIDE or id_ == name[-WIDE:])


def owner_labels(controller: str, labels: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the record labels that mark a record as created by this controller, over the object's own labels.

    The mark overrides a label with the same name. Values that the Admin API rejects (empty, longer than 256, with white
    space) are omitted: labels are informational. A controller with a name other than the default adds that name, so
    that two controllers on one gateway can distinguish their records.
    """
    kept = {key: value for key, value in (labels or {}).items() if _is_record_label(value)}
    kept[MANAGED_BY] = MANAGED_BY_VALUE
    kept.pop(CONTROLLER_LABEL, None)
    if controller != DEFAULT_CONTROLLER:
        kept[CONTROLLER_LABEL] = controller
    return kept


def _is_record_label(value: str) -> bool:
    return 0 < len(value) <= LABEL_VALUE_LIMIT and not any(char.isspace() for char in value)


def is_owned(labels: object, controller: str) -> bool:
    """Say whether a record with these labels was made by the controller of that name."""
    if not isinstance(labels, dict) or labels.get(MANAGED_BY) != MANAGED_BY_VALUE:
        return False
    return bool(labels.get(CONTROLLER_LABEL, DEFAULT_CONTROLLER) == controller)


def route_prefix(namespace: str, name: str, first: str = "") -> str:
    """Return the common prefix of the names of all routes of an object (object names contain no underscore).

    `first` is the `record_prefix` of its kind; an ApisixRoute has none. Two objects whose very long names begin alike
    have one prefix.
    """
    return f"{object_name(namespace, name, first)}_"[:_KEPT]


def route_name(namespace: str, name: str, rule: str) -> str:
    """Return the name of the route for an http rule of an ApisixRoute."""
    return f"{namespace}_{name}_{rule}"


def is_of_ingress(namespace: str, rule: str) -> bool:
    """Say whether a rule of an ApisixRoute in a namespace has the name that a path of an Ingress elsewhere may have.

    Names of objects hold no underscore, so only a namespace that is called like the beginning of such names is near.
    """
    return namespace == INGRESS and _OF_INGRESS.fullmatch(rule) is not None


def stream_route_name(namespace: str, name: str, rule: str) -> str:
    """Return the name of the stream route for a stream rule; the suffix stands for UDP as well."""
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
    """Return the name of a record of a host of ingress-nginx; no namespace is called like its beginning."""
    return f"{NGINX}_{host}_{part}"


def nginx_limits(namespace: str, name: str) -> str:
    """Return the name of the plugin config with the limits of an Ingress of ingress-nginx."""
    return f"{NGINX}{namespace}_{name}_limits"


def nginx_client_certificate(namespace: str, secret: str) -> str:
    """Return the name of the record with the certificate that backends of ingress-nginx are shown."""
    return f"{NGINX}{namespace}_{secret}_client"


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
    parts = [namespace, service, *([subset] if subset else []), str(port)]
    suffixes = [*(["service"] if granularity == "service" else []), *([f"~{variant}"] if variant else [])]
    return "_".join([*parts, *suffixes])


def object_name(namespace: str, name: str, first: str = "") -> str:
    """Return the name of the one record of an object: external upstream, plugin config, ssl, global rule.

    Where objects of several kinds make such records, `first` is the `record_prefix` of the kind.
    """
    return f"{first}_{namespace}_{name}" if first else f"{namespace}_{name}"


def consumer_name(namespace: str, name: str, style: ConsumerNames = "compatible") -> str:
    """Return the username of an ApisixConsumer.

    `compatible` is that of 1.8: dashes become underscores, so that `team/a-admin` and `team-a/admin` have one username.
    `unambiguous` keeps the dashes. Names of namespaces and objects contain no underscore, so the one in the middle
    separates namespace and name, and a username with two of them can only be a compatible one.
    """
    username = f"{namespace}_{name}"
    return username if style == "unambiguous" else username.replace("-", "_")
