"""The document that an API-driven standalone gateway is given: every record, with a version for each kind.

The gateway decides by these numbers what to load (APISIX admin/standalone.lua and core/config_yaml.lua, measured on
3.18): it ignores a kind whose version is unchanged, an item whose `modifiedIndex` is unchanged, and a document whose
digest it already has. It rejects a version that is lower than its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.model.json import JsonObject, canonical, list_in
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import EXCLUSIVE, taken

KINDS = (
    "consumer_groups",
    "consumers",
    "global_rules",
    "plugin_configs",
    "plugin_metadata",
    "plugins",
    "protos",
    "routes",
    "secrets",
    "services",
    "ssls",
    "stream_routes",
    "upstreams",
)
"""Every list of a document. A version that is missing would empty its kind."""

GENERATION = 2**20
"""Added to the versions at the start of a term: a former leader cannot have written as many documents meanwhile."""

LARGEST_NUMBER = 10**14
"""Gateways keep 14 digits of a number."""

_UNINDEXED = frozenset({"plugin_metadata", "plugins", "secrets"})
"""Kinds whose schemas have no `modifiedIndex`; the gateway loads all of their items when the version increases."""


@dataclass(slots=True)
class Document:
    """All records of a standalone gateway.

    Attributes:
        items: Kind → id → the item as sent.
        versions: Kind → version.
    """

    items: dict[str, dict[str, bytes]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def get(self, key: RecordKey) -> bytes | None:
        """Return an item."""
        return self.items[key.kind].get(key.id)

    def changed(self, changes: Mapping[RecordKey, bytes | None]) -> Document:
        """Return a copy with some items replaced, or removed (None), and higher versions of their kinds."""
        items, versions = dict(self.items), dict(self.versions)
        for kind in {key.kind for key in changes}:
            items[kind] = dict(items[kind])
            versions[kind] += 1
        for key, item in changes.items():
            if item is None:
                items[key.kind].pop(key.id, None)
            else:
                items[key.kind][key.id] = item
        return Document(items, versions)

    def raised(self, base: int) -> Document:
        """Return a copy in which every version is higher than `base`."""
        return Document(self.items, dict.fromkeys(KINDS, base + 1))

    def retracting(self, attempt: Document) -> Document:
        """Return a copy with higher versions than a document that some gateways may have accepted."""
        versions = {kind: version + (version != self.versions[kind]) for kind, version in attempt.versions.items()}
        return Document(self.items, versions)

    def again(self, kinds: Collection[RecordKind]) -> Document:
        """Return a copy with higher versions of some kinds: gateways load them again."""
        return Document(self.items, {kind: version + (kind in kinds) for kind, version in self.versions.items()})

    def without_rivals(self, held: Document) -> Document:
        """Return a copy without the records whose exclusive keys other records of a gateway's document have."""
        holders = {(key.kind, each): key for key, item in held for each in _takes(key, item)}
        rivals = {
            key: None
            for key, item in self
            if any(holders.get((key.kind, each), key) != key for each in _takes(key, item))
        }
        return Document(self.changed(rivals).items, self.versions)

    def with_items(self, other: Document, keys: Collection[RecordKey]) -> Document:
        """Return a copy that also has some items of another document, unless it has items with the same keys."""
        items = {kind: dict(found) for kind, found in self.items.items()}
        for key in keys:
            items[key.kind].setdefault(key.id, other.items[key.kind][key.id])
        return Document(items, self.versions)

    def __iter__(self) -> Iterator[tuple[RecordKey, bytes]]:
        """Yield every item."""
        for kind, items in self.items.items():
            for id_, item in items.items():
                yield RecordKey(kind, id_), item  # type: ignore[arg-type]  # other kinds are only passed on

    @property
    def is_empty(self) -> bool:
        """Whether there are no items."""
        return not any(self.items.values())

    @property
    def highest(self) -> int:
        """The highest version."""
        return max(self.versions.values())

    def encode(self) -> bytes:
        """Return the body of the request."""
        parts = [b'"%b":[%b]' % (kind.encode(), b",".join(self.items[kind].values())) for kind in KINDS]
        parts += [b'"%b_conf_version":%d' % (kind.encode(), self.versions[kind]) for kind in KINDS]
        return b"{%b}" % b",".join(parts)


def item_of(key: RecordKey, body: Mapping[str, object]) -> bytes:
    """Return a record as an item. Its `modifiedIndex` is a hash, so it changes exactly when the record does."""
    item = dict(body) if key.kind == "consumers" else {"id": key.id, **body}
    if key.kind not in _UNINDEXED:
        item["modifiedIndex"] = _index(canonical(item))
    return canonical(item)


def parsed(content: bytes) -> Document:
    """Return the document that a gateway has.

    Raises:
        GatewayUnavailable: It is not a document.
    """
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or f"{KINDS[0]}_conf_version" not in found:
        raise GatewayUnavailable("the response is not the document of a standalone gateway", sent=False)
    document = Document()
    for kind in KINDS:
        version = found.get(f"{kind}_conf_version")
        document.versions[kind] = version if isinstance(version, int) else 0
        try:
            items = {id_: canonical(item) for id_, item in _identified(kind, list_in(found.get(kind)))}
        except TypeError:  # nested too deeply
            raise GatewayUnavailable(f"the gateway has {kind} that cannot be read", sent=False) from None
        document.items[kind] = items
    return document


def listed(kind: str, content: bytes) -> bytes:
    """Return the records of one kind of a gateway's document as the list that the Admin API returns with etcd."""
    items = parsed(content).items[kind].items()
    return canonical({"list": [{"key": f"/{kind}/{id_}", "value": record_in(item)[0]} for id_, item in items]})


def record_in(item: bytes) -> tuple[JsonObject, int]:
    """Return the record that an item was made of, and its `modifiedIndex`, or 0."""
    body: JsonObject = orjson.loads(item)
    index = body.pop("modifiedIndex", 0)
    return body, index if isinstance(index, int) else 0


def digest_of(content: bytes) -> str:
    """Return the digest of a document. The gateway only compares it with that of the document before."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _identified(kind: str, items: list[object]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the items of a list by id; the gateway generates ids for items without one, as is done here."""
    for number, item in enumerate(items, 1):
        if isinstance(item, dict):
            yield str(item.get("id") or item.get("username") or f"arr_{number}"), item


def _takes(key: RecordKey, item: bytes) -> frozenset[tuple[str, str]]:
    return taken(key.kind, record_in(item)[0].get("plugins")) if key.kind in EXCLUSIVE else frozenset()


def _index(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest()) % (LARGEST_NUMBER - 1) + 1
