"""Holds: records that are neither deleted nor reassigned while their object cannot be translated."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey, RecordKind
from apisix_ingress.model.kinds.table import PREFIXES, RESOURCES
from apisix_ingress.model.names import consumer_name, nginx_name, nginx_prefix, object_name, route_prefix
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.ids.id_table import HASHED
from translation.nginx.options import KIND as NGINX_HOST


def holds_by_name(key: ObjectKey) -> tuple[Hold, ...]:
    """Return holds on all records whose name or id shows that they belong to the object with this key."""
    if key.kind == NGINX_HOST:
        return (
            Hold("routes", prefix=nginx_prefix(key.name)),
            Hold("ssls", names=frozenset({nginx_name(key.name, "tls")})),
        )
    row = RESOURCES[key.kind]
    name = object_name(key.namespace, key.name) if key.namespace else key.name
    names = frozenset({name, object_name(key.namespace, key.name, row.record_prefix) if key.namespace else name})
    usernames = frozenset({consumer_name(*key[1:], "compatible"), consumer_name(*key[1:], "unambiguous")})
    prefixes: list[tuple[RecordKind, str]] = [("upstreams", f"{name}_")]
    if row.record_prefix or key.namespace not in PREFIXES:  # elsewhere the names may belong to another kind
        prefixes.append(("routes", route_prefix(key.namespace, key.name, row.record_prefix)))
    by_prefix = (Hold(kind, prefix=prefix) for kind, prefix in prefixes)
    by_name = (Hold(kind, names=names) for kind in sorted(HASHED))
    return (*by_prefix, *by_name, Hold("consumers", ids=usernames))
