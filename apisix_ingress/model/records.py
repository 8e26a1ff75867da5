"""Records: what should exist in a gateway, and how a desired record is compared with what a gateway returns.

A body is the JSON object as the Admin API takes it. `refs` are the records that must exist before this one can be
written and that must not be deleted while it exists. How an id or a label is made belongs to `names`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apisix_ingress.model.json import FrozenJson, JsonObject, canonical, list_in
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.network.host_claims import EVERY_HOST, claimed_name, claimed_port

UPSERT_RANK: dict[RecordKind, int] = {
    "ssls": 0,
    "upstreams": 0,
    "plugin_metadata": 0,
    "plugin_configs": 1,
    "consumers": 1,
    "global_rules": 2,
    "routes": 3,
    "stream_routes": 3,
}
"""Writes go in this order, deletes in the reverse one: a plugin config may split traffic to an upstream."""

UNLABELLED: frozenset[RecordKind] = frozenset({"global_rules", "plugin_metadata"})
"""Kinds whose records carry no labels (contract: fact 7): whose they are is in a ledger."""

SERVER_FIELDS = frozenset({"create_time", "update_time"})
"""What the gateway adds to a stored record (contract: Admin API fact 2)."""

_ADDED: dict[RecordKind, frozenset[str]] = {"plugin_metadata": SERVER_FIELDS | {"id"}}
"""The same for kinds to which it adds more."""

WRITE_ONLY: dict[RecordKind, tuple[tuple[str, ...], ...]] = {
    "ssls": (("key",), ("keys",)),
    "upstreams": (("tls", "client_key"),),
}
"""Paths that a gateway never returns in clear text, so that they can't be compared (contract: fact 15)."""

EXCLUSIVE: frozenset[RecordKind] = frozenset({"global_rules", "consumers"})
"""Kinds of which a gateway lets one record alone have a plugin, or a credential (contract: fact 14)."""

_CREDENTIALS = {
    "key-auth": "key",
    "basic-auth": "username",
    "jwt-auth": "key",
    "hmac-auth": "key_id",
    "ldap-auth": "user_dn",
}
"""Plugin → the field that identifies a consumer."""

NO_NAMES: Mapping[RecordKey, str] = {}

_EXACT = 2**53
"""Up to here a float holds every integer; a larger one stays a float, since JSON integers end at 64 bits."""

_UNENCODABLE = b"\0"
"""Digest of a record nested too deeply to be sent: equal to nothing that a gateway may hold."""


@dataclass(frozen=True, eq=False)
class Record:
    """One desired record.

    Two records are equal when they would be sent as the same bytes to the same clusters.
    """

    key: RecordKey
    name: str
    """What the id was made from; unique within the kind."""
    body: FrozenJson = field(repr=False)
    """The body as sent, `id` included where the Admin API takes it."""
    clusters: frozenset[str] | None = None
    """Names of the gateway clusters it belongs to; None: all of them."""
    existing_only: bool = False
    """Update it where a gateway has it, never create it."""
    meant: Mapping[RecordKey, str] = field(default_factory=lambda: NO_NAMES, repr=False)
    """The names of the records that it names: two names may have had one id, one after the other."""

    @cached_property
    def payload(self) -> bytes:
        """The bytes that are sent: canonical JSON."""
        return canonical(self.body)

    @property
    def size(self) -> int:
        """Bytes that are sent; none of a record that is nested too deeply to be sent."""
        try:
            return len(self.payload)
        except TypeError:
            return 0

    @cached_property
    def refs(self) -> frozenset[RecordKey]:
        """The records that this one names."""
        return frozenset(references(self.key.kind, self.body))

    @cached_property
    def takes(self) -> frozenset[tuple[str, str]]:
        """What no other record of its kind may have, of the kinds in `EXCLUSIVE`: plugin, and the credential in it."""
        return taken(self.key.kind, self.body.get("plugins"))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it takes requests or handshakes for, see `hosts_of`."""
        return hosts_of(self.key.kind, self.body)

    @cached_property
    def digest(self) -> bytes:
        """The comparable form: equal to `comparable` of what a gateway returns for it."""
        try:
            return comparable(self.key.kind, self.body)
        except (TypeError, RecursionError):
            return _UNENCODABLE

    def prepare(self) -> None:
        """Compute the values derived from the body, which is slow for a large one, so that later uses do not wait.

        Past the lock of `cached_property`, which all records share: it may be called in a thread.
        """
        for name in ("payload", "refs", "takes", "digest"):
            with contextlib.suppress(TypeError):  # nested too deeply: as ever, who asks is told
                vars(self)[name] = vars(Record)[name].func(self)

    def __eq__(self, other: object) -> bool:
        """Compare by what would be sent, and where."""
        if not isinstance(other, Record):
            return NotImplemented
        same_target = self.clusters == other.clusters and self.existing_only == other.existing_only
        return self.key == other.key and same_target and self.meant == other.meant and self._is_sent_as(other)

    def _is_sent_as(self, other: Record) -> bool:
        try:
            return self.payload == other.payload
        except TypeError:
            return self.body is other.body  # nested too deeply: neither can be sent

    def __hash__(self) -> int:
        """Hash by key: two versions of one record are rarely in one set."""
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Former:
    """The previous records of an owner: the only information about the owner of a record that is no longer desired.

    Attributes:
        namespace: The owner's; empty for an owner outside of namespaces, or an unknown one.
        records: Its records by key.
    """

    namespace: str = ""
    records: Mapping[RecordKey, Record] = field(default_factory=dict)


UNKNOWN = Former()
"""The previous records are unknown: it is too long ago, or another process had them."""


def references(kind: RecordKind, body: FrozenJson) -> Iterator[RecordKey]:
    """Yield every record that a body names: upstream, plugin config, traffic-split upstreams.

    The Admin API checks `upstream_id` and `plugin_config_id` at write time and guards their deletion, but not the
    upstreams of a traffic-split (contract: facts 11 to 13): those are counted here as well.
    """
    if upstream_id := body.get("upstream_id"):
        yield RecordKey("upstreams", str(upstream_id))
    if plugin_config_id := body.get("plugin_config_id"):
        yield RecordKey("plugin_configs", str(plugin_config_id))
    if kind in ("routes", "plugin_configs", "global_rules", "consumers"):
        yield from _split_upstreams(body.get("plugins"))


def hosts_of(kind: RecordKind, body: FrozenJson) -> tuple[str, ...]:
    """Return the hosts that a record takes requests or handshakes for, as they are claimed (model.hostclaims).

    Of every host it is `*`; of a stream route without a server name its port; of other kinds there are none.
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
    """Return what a record of a kind with these plugins keeps from others of its kind, see `Record.takes`."""
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


def _split_upstreams(plugins: Any) -> Iterator[RecordKey]:
    split = plugins.get("traffic-split") if isinstance(plugins, dict) else None
    for rule in _dicts(split.get("rules") if isinstance(split, dict) else None):
        for target in _dicts(rule.get("weighted_upstreams")):
            if upstream_id := target.get("upstream_id"):
                yield RecordKey("upstreams", str(upstream_id))


def _dicts(value: Any) -> Iterable[JsonObject]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def comparable(kind: RecordKind, body: FrozenJson) -> bytes:
    """Return the form in which a desired body and a gateway's body of the same record are equal.

    Drops what the server adds and what it never returns, reads an empty JSON object and an empty list as one value
    (Lua has one empty table), and an integral float as the integer.
    """
    added = _ADDED.get(kind, SERVER_FIELDS)
    cleaned = {name: value for name, value in body.items() if name not in added}
    for path in WRITE_ONLY.get(kind, ()):
        cleaned = _without(cleaned, path)
    return canonical(_normal(cleaned))


def _without(body: JsonObject, path: tuple[str, ...]) -> JsonObject:
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
