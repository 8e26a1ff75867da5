"""References between records: an index over the watched records, for existence checks and deletion guards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from e2e.devgateway import secretbox
from e2e.devgateway.adminapi.record_kinds import Refused
from e2e.devgateway.etcd import EtcdDown
from e2e.devgateway.store import PREFIX, Record, Records

Body = dict[str, Any]
Target = tuple[str, str]

CREDENTIAL_KEYS = {"key-auth": "key", "basic-auth": "username", "jwt-auth": "key", "hmac-auth": "key_id"}

LINKS: dict[str, tuple[tuple[str, str], ...]] = {
    "routes": (("upstream_id", "upstreams"), ("service_id", "services"), ("plugin_config_id", "plugin_configs")),
    "services": (("upstream_id", "upstreams"),),
    "stream_routes": (("service_id", "services"),),
    "consumers": (("group_id", "consumer_groups"),),
}
"""Fields that a deletion guard checks; as in the gateway, the upstream of a stream route is not guarded."""

GUARDS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "upstreams": (
        "this upstream",
        (
            ("routes", "route"),
            ("services", "service"),
            ("plugin_configs", "plugin_config"),
            ("consumers", "consumer"),
            ("consumer_groups", "consumer_group"),
            ("global_rules", "global_rules"),
        ),
    ),
    "services": ("this service directly", (("routes", "route"), ("stream_routes", "stream_route"))),
    "plugin_configs": ("this plugin config", (("routes", "route"),)),
    "consumer_groups": ("this consumer group", (("consumers", "consumer"),)),
    "protos": ("this proto", (("routes", "route"), ("services", "service"))),
}


def split_upstreams(plugins: object) -> Iterator[str]:
    """Yield the upstream ids that traffic-split names."""
    conf = plugins.get("traffic-split") if isinstance(plugins, dict) else None
    for rule in conf.get("rules", ()) if isinstance(conf, dict) else ():
        for target in rule.get("weighted_upstreams", ()) if isinstance(rule, dict) else ():
            if isinstance(target, dict) and "upstream_id" in target:
                yield str(target["upstream_id"])


def credentials_of(plugins: object) -> Iterator[Target]:
    """Yield (plugin, credential of the consumer), decrypted."""
    for plugin, field in CREDENTIAL_KEYS.items():
        conf = plugins.get(plugin) if isinstance(plugins, dict) else None
        if isinstance(conf, dict) and isinstance(value := conf.get(field), str):
            yield plugin, (secretbox.decrypt(value) or value) if field == "key" else value


def links_of(record: Record) -> dict[Target, bool]:
    """Return record that is referred to → whether only a plugin refers to it."""
    plugins = record.value.get("plugins")
    found = {("upstreams", upstream): True for upstream in split_upstreams(plugins)}
    transcode = plugins.get("grpc-transcode") if isinstance(plugins, dict) else None
    if isinstance(transcode, dict) and "proto_id" in transcode:
        found["protos", str(transcode["proto_id"])] = False
    for field, kind in LINKS.get(record.kind, ()):
        if field in record.value:
            found[kind, str(record.value[field])] = False
    return found


class References:
    """Knows which records exist and are in use, from the store's memory."""

    def __init__(self, store: Records) -> None:
        self._store = store
        self._links: dict[Target, dict[Target, bool]] = {}
        self._users: dict[Target, dict[Target, bool]] = {}
        self._credentials: dict[Target, dict[str, str]] = {}
        self._held: dict[Target, list[Target]] = {}
        store.subscribe(self._changed)

    async def need(self, kind: str, label: str, name: object) -> None:
        """Reject unless the record exists; as in the gateway, an unavailable etcd has the same result."""
        message = f"failed to fetch {label} info by {label} id [{name}]"
        try:
            found = await self._store.exists(f"{PREFIX}{kind}/{name}")
        except EtcdDown as error:
            raise Refused(f"{message}: has no healthy etcd endpoint available") from error
        if not found:
            raise Refused(f"{message}, response code: 404")

    def guard(self, kind: str, name: str) -> None:
        """Reject the deletion of a record that is in use."""
        users = self._users.get((kind, name))
        if not users:
            return
        what, order = GUARDS[kind]
        for user_kind, label in order:
            for (found_kind, user), by_plugin in users.items():
                if found_kind == user_kind:
                    holder = f"plugin in {label}" if by_plugin else label
                    raise Refused(f"can not delete {what}, {holder} [{user}] is still using it now")

    def certificate_type(self, name: str) -> str:
        """Return `server` or `client`."""
        record = self._store.kind("ssls").get(name)
        return str(record.value.get("type", "server")) if record else "server"

    def consumer_of(self, plugin: str, credential: str) -> str | None:
        """Return the consumer that has a credential (an API key, a user name), or None."""
        holders = self._credentials.get((plugin, credential))
        return next(iter(holders.values())) if holders else None

    def check_exclusive(self, kind: str, name: str, plugins: Body) -> None:
        """Reject credentials of another consumer, and plugins of another global rule, in the gateway's memory."""
        if kind == "consumers" and name:
            self.check_unique(plugins, name)
        elif kind == "global_rules":
            for other in self._store.kind(kind).values():
                for plugin in plugins.keys() & (other.value.get("plugins") or {}).keys() if other.name != name else ():
                    raise Refused(f"plugin '{plugin}' already exists in global rule with id '{other.name}'")

    def check_unique(self, plugins: Body, consumer: str) -> None:
        """Reject credentials that another consumer has."""
        for plugin, credential in credentials_of(plugins):
            for holder in self._credentials.get((plugin, credential), {}).values():
                if holder != consumer:
                    raise Refused(f"duplicate key of plugin {plugin} found with consumer: {holder}")

    def _changed(self, kind: str, name: str, record: Record | None) -> None:
        if kind == "consumers":
            self._consumer_changed(name, record)
        key = (kind, name)
        old, new = self._links.pop(key, {}), links_of(record) if record else {}
        for target in old.keys() - new.keys():
            self._users[target].pop(key, None)
            if not self._users[target]:
                del self._users[target]
        for target, by_plugin in new.items():
            self._users.setdefault(target, {})[key] = by_plugin
        if new:
            self._links[key] = new

    def _consumer_changed(self, name: str, record: Record | None) -> None:
        for held in self._held.pop(("consumers", name), ()):
            self._credentials[held].pop(name, None)
            if not self._credentials[held]:
                del self._credentials[held]
        if record is not None:
            held_now = list(credentials_of(record.value.get("plugins")))
            self._held["consumers", name] = held_now
            for held in held_now:
                self._credentials.setdefault(held, {})[name] = name.split("/")[0]
