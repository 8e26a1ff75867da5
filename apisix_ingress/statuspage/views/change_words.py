"""Describes a change of a record: nodes, paths, hosts, plugins and other fields; never values of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import orjson

from apisix_ingress.model.json import JsonObject

MOST_WORDS = 8
"""Maximum number of differences that are described."""

MOST_NAMED = 5
"""Maximum number of nodes, paths or hosts that are named."""

_LONGEST = 100
"""Maximum length of a name, in characters."""

_LISTS: Mapping[str, tuple[str, ...]] = {
    "path": ("uri", "uris"),
    "host": ("host", "hosts"),
    "server name": ("sni", "snis"),
    "method": ("methods",),
}
"""Noun → the fields with the values that it stands for."""

_SHOWN = ("priority", "status", "scheme", "type", "pass_host", "retries", "enable_websocket", "server_port")
"""Fields whose values are shown."""

_NOUNS = {
    "vars": "conditions",
    "cert": "certificate",
    "certs": "additional certificates",
    "upstream_id": "upstream",
    "plugin_config_id": "plugin config",
    "type": "load balancing",
    "timeout": "timeouts",
    "checks": "health checks",
    "server_port": "port",
}
"""Field → its name in a sentence, if it is another one."""

_UNSAID = frozenset({"id", "desc", "name", "nodes", "plugins", *(each for names in _LISTS.values() for each in names)})
"""Fields that are described separately, or not at all."""


def change_words(before: bytes, after: bytes) -> list[str]:
    """Return what differs between two digests; nothing if either body is unknown or does not exist."""
    if not before or not after:
        return []
    found = list(islice(_differences(_body(before), _body(after)), MOST_WORDS + 1))
    return found if len(found) <= MOST_WORDS else [*found[:MOST_WORDS], "and more"]


def _body(digest: bytes) -> JsonObject:
    try:
        found = orjson.loads(digest)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _differences(old: JsonObject, new: JsonObject) -> Iterator[str]:
    yield from _nodes(_addresses(old.get("nodes")), _addresses(new.get("nodes")))
    for noun, names in _LISTS.items():
        yield from _members(noun, _values(old, names), _values(new, names))
    yield from _plugins(_mapping(old.get("plugins")), _mapping(new.get("plugins")))
    for name in sorted((old.keys() | new.keys()) - _UNSAID):
        if old.get(name) != new.get(name):
            noun = _NOUNS.get(name, name)
            yield f"{noun} {_shown(old.get(name))} → {_shown(new.get(name))}" if name in _SHOWN else f"{noun} changed"


def _nodes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old == new:
        return
    acts = (("added", _without(new, old)), ("removed", _without(old, new)))
    parts = [f"{', '.join(names)} {act}" for act, names in acts if names]
    yield f"nodes {len(old)} → {len(new)}: {'; '.join(parts) or 'weights changed'}"


def _addresses(nodes: Any) -> Mapping[str, Any]:
    """Return the nodes of an upstream: address → weight."""
    if isinstance(nodes, dict):
        return nodes
    found = (each for each in nodes if isinstance(each, dict)) if isinstance(nodes, list) else ()
    return {f"{each.get('host')}:{each.get('port')}": each.get("weight") for each in found}


def _values(body: JsonObject, names: tuple[str, ...]) -> Mapping[str, Any]:
    found = (body[name] for name in names if name in body)
    return {str(each): None for value in found for each in (value if isinstance(value, list) else (value,))}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _members(noun: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{noun} {name} added" for name in _without(new, old))
    yield from (f"{noun} {name} removed" for name in _without(old, new))


def _plugins(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    yield from _members("plugin", old, new)
    yield from (f"plugin {_cut(name)} changed" for name in sorted(old.keys() & new.keys()) if old[name] != new[name])


def _without(these: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return the first names that only one side has, and how many there are more."""
    names = [_cut(each) for each in these if each not in others]
    more = len(names) - MOST_NAMED
    return [*names[:MOST_NAMED], f"and {more} more"] if more > 0 else names


def _shown(value: Any) -> str:
    return "none" if value is None else _cut(value if isinstance(value, str) else orjson.dumps(value).decode())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
