"""Dumps and restores all records of a gateway through its Admin API, like an operator's backup of etcd.

Not for the product: a restore deletes and overwrites all existing records. Times of creation and update are the
gateway's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

KINDS = (
    "upstreams",
    "services",
    "plugin_configs",
    "ssls",
    "protos",
    "secrets",
    "consumer_groups",
    "consumers",
    "global_rules",
    "plugin_metadata",
    "routes",
    "stream_routes",
)
"""Referenced kinds come before the kinds that refer to them."""

OF_THE_GATEWAY = frozenset({"create_time", "update_time"})
Dump = dict[str, dict[str, dict[str, Any]]]
"""Kind → id → body."""


def take(url: str, key: str) -> Dump:
    """Return every record of a gateway."""
    with _client(url, key) as client:
        return {kind: _list(client, kind) for kind in KINDS}


def save(dump: Dump, file: Path) -> None:
    """Write a dump to a file, as the proxy's `restore` reads it."""
    file.write_text(json.dumps(dump))


def load(url: str, key: str, file: Path) -> None:
    """Restore exactly the records of a dump in a file."""
    put_back(url, key, json.loads(file.read_text()))


def put_back(url: str, key: str, dump: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Restore exactly the records of a dump; an empty dump wipes the gateway."""
    with _client(url, key) as client:
        for kind in KINDS:
            for id_, body in dump.get(kind, {}).items():
                _check(client.put(f"/{kind}/{id_}" if kind != "consumers" else f"/{kind}", json=_sendable(kind, body)))
        for kind in reversed(KINDS):
            for id_ in _list(client, kind).keys() - dump.get(kind, {}).keys():
                _check(client.delete(f"/{kind}/{id_}"))


def _client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"X-API-KEY": key}, timeout=10, trust_env=False)


def _list(client: httpx.Client, kind: str) -> dict[str, dict[str, Any]]:
    reply = client.get(f"/{kind}")
    if reply.status_code in (400, 404):
        return {}  # a kind that this gateway does not have, e.g. stream routes while streams are disabled
    listed = _check(reply).json().get("list") or []
    return {item["key"].split(f"/{kind}/", 1)[1]: item["value"] for item in listed}


def _check(reply: httpx.Response) -> httpx.Response:
    if reply.status_code >= 300:
        raise RuntimeError(f"{reply.request.method} {reply.request.url.path}: {reply.status_code} {reply.text[:200]}")
    return reply


def _sendable(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a listed record without the fields that cannot be written."""
    left = OF_THE_GATEWAY if kind != "plugin_metadata" else OF_THE_GATEWAY | {"id"}
    return {name: value for name, value in body.items() if name not in left}
