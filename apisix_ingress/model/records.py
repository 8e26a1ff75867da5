"""Records: what should exist in a gateway, and how desired records are compared with the gateway's.

A body is the JSON object that the Admin API accepts. `refs` are the records that must exist before this one can be
written and that must not be deleted while it exists. `names` generates ids and labels.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apisix_ingress.model.json import FrozenJson, JsonObject, canonical, list_in
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.network.host_claims import EVERY_HOST, claimed_name, claimed_port
from apisix_ingress.model.objects import Secret

UPSERT_RANK: dict[RecordKind, int] = {
    "ssls": 0,
    "upstreams": 0,
    "plugin_metadata": 0,
    "protos": 0,
    "secrets": 0,
    "plugin_configs": 1,
    "consumer_groups": 1,
    "consumers": 2,
    "global_rules": 2,
    "routes": 3,
    "stream_routes": 3,
}
"""Order of writes; deletes use the reverse order: a plugin config may split traffic to an upstream."""

UNLABELLED: frozenset[RecordKind] = frozenset({"global_rules", "plugin_metadata"})
"""Kinds whose records have no labels (contract: fact 7); a ledger lists the ones that this controller created."""

SERVER_FIELDS = frozenset({"create_time", "update_time"})
"""Fields that the gateway adds to a stored record (contract: Admin API fact 2)."""

WITHOUT_ID: frozenset[RecordKind] = frozenset({"plugin_metadata", "secrets"})
"""Kinds whose written bodies do not contain the id; the gateway adds it."""

_ADDED: dict[RecordKind, frozenset[str]] = dict.fromkeys(WITHOUT_ID, SERVER_FIELDS | {"id"})
"""Kind → these fields, for kinds with additional ones."""

WRITE_ONLY: dict[RecordKind, tuple[tuple[str, ...], ...]] = {
    "ssls": (("key",), ("keys",)),
    "upstreams": (("tls", "client_key"),),
}
"""Paths that a gateway never returns in clear text, so they cannot be compared (contract: fact 15)."""

EXCLUSIVE: frozenset[RecordKind] = frozenset({"global_rules", "consumers"})
"""Kinds in which a plugin, or a credential, may be in only one record of a gateway (contract: fact 14)."""

_CREDENTIALS = {
    "key-auth": "key",
    "basic-auth": "username",
    "jwt-auth": "key",
    "hmac-auth": "key_id",
    "ldap-auth": "user_dn",
}
"""Plugin → the field that identifies a consumer."""

TARGET_MARK = "/"
"""Part of the name of a gateway cluster that GatewayProxies describe, and of no other: its URL or Service."""

NO_NAMES: Mapping[RecordKey, str] = {}

_EXACT = 2**53
"""Largest float that is compared as an integer; floats represent every integer up to here."""

_ALTERED = (b"{}", b".0,", b".0}", b".0]")
"""What JSON text contains if it has an empty object or an integral float; strings may contain it, too."""

_UNENCODABLE = b"\0"
"""Digest of a record that is nested too deeply to be sent: equal to no record of a gateway."""


@dataclass(frozen=True, eq=False)
class Record:
    """One desired record.

    Two records are equal when they would be sent as the same bytes to the same clusters.
    """

    key: RecordKey
    name: str
    """The name that the id was generated from; unique within the kind."""
    body: FrozenJson = field(repr=False)
    """The body as sent, including `id` where the Admin API accepts it."""
    clusters: frozenset[str] | None = None
    """Names of the gateway clusters that it belongs to; None: all clusters of the settings, see `is_meant_for`."""
    existing_only: bool = False
    """Only update the record where a gateway already has it; never create it."""
    meant: Mapping[RecordKey, str] = field(default_factory=lambda: NO_NAMES, repr=False)
    """The names of the referenced records: an id may have belonged to different names over time."""
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    """The Secrets that its translation read, in that version: outputs mask their values in the body."""

    @cached_property
    def payload(self) -> bytes:
        """The bytes that are sent: canonical JSON."""
        return canonical(self.body)

    @property
    def size(self) -> int:
        """Size of the payload in bytes; 0 for a record that is nested too deeply to be sent."""
        try:
            return len(self.payload)
        except TypeError:
            return 0

    @cached_property
    def refs(self) -> frozenset[RecordKey]:
        """The records that this record references."""
        return frozenset(references(self.key.kind, self.body))

    @cached_property
    def takes(self) -> frozenset[tuple[str, str]]:
        """(plugin, credential) pairs that no other record of its kind may have; only kinds in `EXCLUSIVE`."""
        return taken(self.key.kind, self.body.get("plugins"))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts whose requests or handshakes it matches, see `hosts_of`."""
        return hosts_of(self.key.kind, self.body)

    @cached_property
    def digest(self) -> bytes:
        """The comparable form: equal to `comparable` of the gateway's body for this record."""
        try:
            return comparable(self.key.kind, self.body, self.payload)
        except (TypeError, RecursionError):
            return _UNENCODABLE

    def generated_from(self, secrets: tuple[Secret, ...]) -> Record:
        """Return the record with its `secrets`; the values derived from the body are kept."""
        found = copy.copy(self)
        found.__dict__["secrets"] = secrets
        return found

    def prepare(self) -> None:
        """Compute the values derived from the body in advance, which takes long for a large body."""
        for name in ("payload", "refs", "takes", "digest"):
            with contextlib.suppress(TypeError):  # nested too deeply: raised again on access
                getattr(self, name)

    def __eq__(self, other: object) -> bool:
        """Compare by payload and clusters."""
        if not isinstance(other, Record):
            return NotImplemented
        same_target = self.clusters == other.clusters and self.existing_only == other.existing_only
        return self.key == other.key and same_target and self.meant == other.meant and self._is_sent_as(other)

    def _is_sent_as(self, other: Record) -> bool:
        try:
            return self.payload == other.payload
        except TypeError:
            return self.body is other.body  # nested too deeply: neither record can be sent

    def __hash__(self) -> int:
        """Hash by key: two versions of a record are rarely in the same set."""
        return hash(self.key)


def is_meant_for(clusters: frozenset[str] | None, cluster: str) -> bool:
    """Return whether records with these `clusters` belong to a gateway cluster."""
    return TARGET_MARK not in cluster if clusters is None else cluster in clusters


@dataclass(frozen=True, slots=True)
class Former:
    """The previous records of an owner: the only information about the owner of a record that is no longer desired.

    Attributes:
        namespace: Namespace of the owner; empty if it is cluster-scoped or unknown.
        records: Its previous records by key, and the current ones: a route that replaces another one is new.
    """

    namespace: str = ""
    records: Mapping[RecordKey, Record] = field(default_factory=dict)


UNKNOWN = Former()
"""The previous records are unknown: they are too old, or belonged to another process."""


def references(kind: RecordKind, body: FrozenJson) -> Iterator[RecordKey]:
    """Yield every record that a body references: upstream, plugin configs, consumer group, traffic-split upstreams.

    The Admin API checks `upstream_id` and `plugin_config_id` at write time and guards their deletion, but not the
    upstreams of a traffic-split (contract: facts 11 to 13), which are included here.
    """
    if upstream_id := body.get("upstream_id"):
        yield RecordKey("upstreams", str(upstream_id))
    if plugin_config_id := body.get("plugin_config_id"):
        yield RecordKey("plugin_configs", str(plugin_config_id))
    if group_id := body.get("group_id"):
        yield RecordKey("consumer_groups", str(group_id))
    plugins = body.get("plugins")
    if not plugins or not isinstance(plugins, dict):
        return
    if kind == "routes":
        yield from _data_of_functions(plugins)
    if kind in ("routes", "stream_routes", "plugin_configs", "global_rules", "consumers", "consumer_groups"):
        yield from _split_upstreams(plugins)


def hosts_of(kind: RecordKind, body: FrozenJson) -> tuple[str, ...]:
    """Return the hosts whose requests or handshakes a record matches, in the form of `network.host_claims`.

    Every host is `*`; a stream route without a server name has its port; other kinds have no hosts.
    """
    match kind:
        case "routes":
            found = [body["host"]] if "host" in body else body.get("hosts")
        case "ssls":
            found = [body["sni"]] if "sni" in body else body.get("snis")
        case "stream_routes":
            found = [body.get("sni") or claimed_port(body.get("server_port"))]
        case _:
            return ()
    return tuple(dict.fromkeys(claimed_name(str(host)) for host in list_in(found))) or (EVERY_HOST,)


def taken(kind: RecordKind, plugins: Any) -> frozenset[tuple[str, str]]:
    """Return the exclusive keys of a record with these plugins, see `Record.takes`."""
    if kind not in EXCLUSIVE or not isinstance(plugins, dict):
        return frozenset()
    if kind == "global_rules":
        return frozenset((plugin, "") for plugin in plugins)
    return frozenset(_credentials(plugins))


def _credentials(plugins: JsonObject) -> Iterator[tuple[str, str]]:
    for plugin, name in _CREDENTIALS.items():
        config = plugins.get(plugin)
        if isinstance(config, dict) and isinstance(value := config.get(name), str):
            yield plugin, value


def _data_of_functions(plugins: JsonObject) -> Iterator[RecordKey]:
    """Yield the plugin configs whose data the functions of a route for ingress-nginx read."""
    function = plugins.get("serverless-pre-function")
    values = function.get("ingress_nginx") if isinstance(function, dict) else None
    for value in values.values() if isinstance(values, dict) else ():
        for data in value.values() if isinstance(value, dict) else ():
            if isinstance(data, dict) and (id_ := data.get("plugin_config_id")):
                yield RecordKey("plugin_configs", str(id_))


def _split_upstreams(plugins: JsonObject) -> Iterator[RecordKey]:
    split = plugins.get("traffic-split")
    for rule in _dicts(split.get("rules") if isinstance(split, dict) else None):
        for target in _dicts(rule.get("weighted_upstreams")):
            if upstream_id := target.get("upstream_id"):
                yield RecordKey("upstreams", str(upstream_id))


def _dicts(value: Any) -> Iterable[JsonObject]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def comparable(kind: RecordKind, body: FrozenJson, payload: bytes | None = None) -> bytes:
    """Return a canonical form in which desired bodies and a gateway's bodies can be compared.

    Removes fields that the server adds or never returns, treats an empty JSON object and an empty list as equal
    (Lua has one empty table), and integral floats as integers. If the body has none of them, `payload`, its canonical
    JSON, is returned as it is.
    """
    added, cleaned = _ADDED.get(kind, SERVER_FIELDS), body
    if not added.isdisjoint(body):
        cleaned = {name: value for name, value in body.items() if name not in added}
    for path in WRITE_ONLY.get(kind, ()):
        cleaned = _without(cleaned, path)
    text = payload if payload is not None and cleaned is body else canonical(cleaned)
    # Most bodies are in this form as they are: to rebuild them takes six times as long as to search their text.
    return canonical(_normal(cleaned)) if any(each in text for each in _ALTERED) else text


def _without(body: FrozenJson, path: tuple[str, ...]) -> FrozenJson:
    head, *rest = path
    if head not in body:
        return body
    if not rest:
        return {name: value for name, value in body.items() if name != head}
    inner = body[head]
    return {**body, head: _without(inner, tuple(rest))} if isinstance(inner, dict) else body


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()} or []
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value
