"""The kinds of records of the Admin API: names, schemas, unsupported methods, secret fields; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from e2e.devgateway import secretbox
from e2e.devgateway.schemas import record_schemas as schema
from e2e.devgateway.schemas.plugin_names import PLUGINS

Body = dict[str, Any]


class Refused(Exception):
    """The response to the request is an error; `body` is its body."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        self.body: Body = {"error_msg": message}


class NotFound(Refused):
    """The record does not exist; the message is etcd's."""

    def __init__(self) -> None:
        super().__init__("Key not found", 404)
        self.body = {"message": "Key not found"}


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of record: `name` in paths and keys, `label` in messages."""

    name: str
    label: str
    schema: schema.Schema
    unsupported: frozenset[str] = frozenset()
    timed: bool = True


def _resource(name: str, label: str, record_schema: schema.Schema, *unsupported: str, timed: bool = True) -> Resource:
    return Resource(name, label, record_schema, frozenset(unsupported), timed)


RESOURCES: dict[str, Resource] = {
    resource.name: resource
    for resource in (
        _resource("routes", "route", schema.ROUTE),
        _resource("services", "service", schema.SERVICE),
        _resource("upstreams", "upstream", schema.UPSTREAM),
        _resource("ssls", "ssl", schema.SSL),
        _resource("stream_routes", "stream route", schema.STREAM_ROUTE, "PATCH"),
        _resource("consumers", "consumer", schema.CONSUMER, "POST", "PATCH"),
        _resource("credentials", "credential", schema.CREDENTIAL, "POST", "PATCH"),
        _resource("consumer_groups", "consumer group", schema.CONSUMER_GROUP, "POST"),
        _resource("plugin_configs", "plugin config", schema.PLUGIN_CONFIG, "POST"),
        _resource("global_rules", "global rule", schema.GLOBAL_RULE, "POST"),
        _resource("plugin_metadata", "plugin_metadata", {"type": "object"}, "POST", "PATCH", timed=False),
        _resource("protos", "proto", schema.PROTO),
        _resource("secrets", "secret", {"type": "object"}, "POST"),
    )
}


# Encryption of secrets.


def seal(resource: Resource, conf: Body) -> None:
    """Encrypt the fields that are stored encrypted, in place; encrypted values are not encrypted again."""
    _each_plugin_secret(resource, conf, secretbox.encrypt)
    if resource.name == "ssls":
        if "key" in conf:
            conf["key"] = _seal_key(conf["key"])
        if "keys" in conf:
            conf["keys"] = [_seal_key(key) for key in conf["keys"]]
    upstream = conf if resource.name == "upstreams" else conf.get("upstream")
    if isinstance(upstream, dict) and "client_key" in upstream.get("tls", {}):
        upstream["tls"]["client_key"] = _seal_key(upstream["tls"]["client_key"])


def unseal(resource: Resource, conf: Body) -> None:
    """Decrypt plugin secrets in place, as every GET does; private keys stay encrypted."""
    _each_plugin_secret(resource, conf, lambda text: secretbox.decrypt(text) or text)


def hide(resource: Resource, conf: Body) -> Body:
    """Return the record as GET returns it."""
    unseal(resource, conf)
    if resource.name == "ssls":
        return {name: value for name, value in conf.items() if name not in ("key", "keys")}
    return conf


def plain_key(key: str) -> str | None:
    """Return a private key in PEM from its stored form, or None if it cannot be decrypted."""
    return key if key.startswith("---") else secretbox.decrypt(key)


def _seal_key(key: str) -> str:
    return secretbox.encrypt(key) if key.startswith("---") else key


def _each_plugin_secret(resource: Resource, conf: Body, change: Callable[[str], str]) -> None:
    consumer = resource.name in ("consumers", "credentials")
    plugins = conf.get("plugins")
    for name, plugin_conf in (plugins if isinstance(plugins, dict) else {}).items():
        plugin = PLUGINS.get(name)
        if plugin is None or not isinstance(plugin_conf, dict):
            continue
        for path in plugin.consumer_secret if consumer and plugin.consumer else plugin.secret:
            for holder, field in _holders(plugin_conf, path.split(".")):
                holder[field] = change(holder[field])


def _holders(conf: Body, path: list[str]) -> Iterator[tuple[Body, str]]:
    """Yield (object, field) for a dotted path that ends in a string."""
    head, *rest = path
    value = conf.get(head)
    if not rest:
        if isinstance(value, str):
            yield conf, head
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield from _holders(item, rest)
