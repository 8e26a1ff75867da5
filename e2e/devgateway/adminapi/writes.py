"""Writes of the Admin API: PUT, POST, PATCH and DELETE of records."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from e2e.devgateway.adminapi.record_kinds import NotFound, Refused, Resource, seal, unseal
from e2e.devgateway.references import GUARDS, References
from e2e.devgateway.schemas.record_checks import check_metadata, check_record, check_secret
from e2e.devgateway.store import PREFIX, Conflict, Store

Body = dict[str, Any]


class InternalError(Exception):
    """The gateway's own code fails on this request; the response is an HTML page with status 500."""


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed request for a kind of record; `conf` is MISSING without a body."""

    resource: Resource
    name: str | None
    sub_path: str
    conf: Any
    query: dict[str, str]


MISSING = object()


def _as_table(conf: Any) -> Body:
    """Return the conf as an object: in Lua, an array is a table with numeric keys."""
    if isinstance(conf, list):
        return {str(index): item for index, item in enumerate(conf, 1)}
    if not isinstance(conf, dict):
        raise InternalError
    return dict(conf)


def _ttl(query: dict[str, str]) -> int | None:
    return max(1, math.ceil(float(query["ttl"]))) if "ttl" in query else None


class Writer:
    """Validates and performs writes."""

    def __init__(self, store: Store, references: References) -> None:
        self._store = store
        self._references = references

    async def put(self, call: Call) -> tuple[int, Body]:
        """Create or replace a record."""
        key, conf = await self._checked(call, needs_id=True)
        seal(call.resource, conf)
        self._stamp(call.resource, key, conf)
        created = await self._store.put(key, conf, ttl=_ttl(call.query))
        return 201 if created else 200, {"key": key, "value": conf}

    async def post(self, call: Call) -> tuple[int, Body]:
        """Create a record under a generated id."""
        _, conf = await self._checked(call, needs_id=False)
        seal(call.resource, conf)
        conf["create_time"] = conf["update_time"] = int(time.time())
        conf["id"] = await self._store.next_id()
        key = f"{PREFIX}{call.resource.name}/{conf['id']}"
        await self._store.put(key, conf, ttl=_ttl(call.query))
        return 201, {"key": key, "value": conf}

    async def patch(self, call: Call) -> tuple[int, Body]:
        """Merge into a record; a concurrent write of another client is rejected."""
        name, sub_path = self._locate(call)
        if call.conf is MISSING:
            raise Refused("missing new configuration")
        if not sub_path and not isinstance(call.conf, dict | list):
            raise Refused("invalid configuration")
        key = f"{PREFIX}{call.resource.name}/{name}"
        record = await self._store.get(key)
        if record is None:
            raise NotFound
        conf = record.value
        unseal(call.resource, conf)
        _change(conf, sub_path, call.conf)
        _settle_id(call.resource, name, conf, needs_id=True)
        await self._check(call.resource, name, conf)
        seal(call.resource, conf)
        try:
            await self._store.replace(key, conf, modified=record.modified)
        except Conflict as error:
            raise Refused("value changed before overwritten", 503) from error
        return 200, {"key": key, "value": conf}

    async def delete(self, call: Call) -> tuple[int, Body]:
        """Delete a record unless it is in use; with `force=true`, its use is not checked."""
        name, _ = self._locate(call)
        if call.query.get("force") != "true" and call.resource.name in GUARDS:
            self._references.guard(call.resource.name, name)
        key = self._key(call.resource, name, call)
        if call.resource.name == "consumers":
            await self._store.delete(f"{key}/credentials/", below=True)
        if not await self._store.delete(key):
            raise NotFound
        return 200, {"key": key, "deleted": "1"}

    # Parts of requests and records.

    def _locate(self, call: Call) -> tuple[str, str]:
        """Return the record's name and the rest of the path."""
        if call.resource.name == "secrets":
            name, _, sub_path = call.sub_path.partition("/")
            if not call.name or not name:
                raise Refused("no secret id")
            return f"{call.name}/{name}", sub_path
        if not call.name:
            raise Refused(f"missing {call.resource.label} id")
        return call.name, call.sub_path

    def _key(self, resource: Resource, name: str, call: Call) -> str:
        if resource.name == "credentials":
            consumer = call.sub_path.split("/")[0]
            return f"{PREFIX}consumers/{consumer}/credentials/{name}"
        return f"{PREFIX}{resource.name}/{name}"

    async def _checked(self, call: Call, *, needs_id: bool) -> tuple[str, Body]:
        """Validate a complete body; return the key and the record."""
        resource = call.resource
        if call.conf is MISSING:
            raise Refused("missing configurations")
        conf = _as_table(call.conf)
        name = self._locate(call)[0] if resource.name == "secrets" else call.name
        if resource.name != "consumers":
            name = _settle_id(resource, name, conf, needs_id=needs_id)
        _forbid_times(conf)
        await self._check(resource, name, conf)
        if resource.name == "consumers":
            name = str(conf["username"])
        if resource.name == "credentials":
            await self._check_owner(call, conf)
        return self._key(resource, name or "", call), conf

    async def _check(self, resource: Resource, name: str | None, conf: Body) -> None:
        if resource.name == "secrets":
            check_secret(str(name).split("/")[0], conf)
        elif resource.name == "plugin_metadata":
            check_metadata(str(name), conf)
        else:
            await check_record(resource, conf, self._references, name=name)
        if resource.name == "global_rules":
            self._references.check_exclusive(resource.name, str(name), conf["plugins"])

    async def _check_owner(self, call: Call, conf: Body) -> None:
        consumer = call.sub_path.split("/")[0]
        if not await self._store.exists(f"{PREFIX}consumers/{consumer}"):
            raise Refused("consumer not found", 404)
        self._references.check_unique(conf.get("plugins") or {}, consumer)

    def _stamp(self, resource: Resource, key: str, conf: Body) -> None:
        """Set the times; an update keeps the creation time."""
        if not resource.timed:
            return
        kind, _, name = key.removeprefix(PREFIX).partition("/")
        now = int(time.time())
        previous = self._store.kind(kind).get(name)
        conf["create_time"] = previous.value.get("create_time", now) if previous else now
        conf["update_time"] = now


def _settle_id(resource: Resource, name: str | None, conf: Body, *, needs_id: bool) -> str | None:
    """Check that the ids in path and body agree."""
    given = conf.get("id")
    if not needs_id:
        if name is not None or given is not None:
            raise Refused(f"wrong {resource.label} id, do not need it")
        return None
    name = name or (_id_text(given) if given is not None else None)
    if not name:
        raise Refused(f"missing {resource.label} id")
    if given is not None and _id_text(given) != name:
        raise Refused(f"wrong {resource.label} id")
    conf["id"] = name
    return name


def _id_text(value: object) -> str:
    return f"{value:.14g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _forbid_times(conf: Body) -> None:
    """Reject times that the gateway sets itself; the message names the first one, including two blanks."""
    found = [
        place + field
        for place, holder in (("", conf), ("upstream.", conf.get("upstream")), ("plugins.", conf.get("plugins")))
        for field in ("create_time", "update_time")
        if isinstance(holder, dict) and field in holder
    ]
    if found:
        raise Refused(f"the property is forbidden:  {found[0]}")


def _change(conf: Body, sub_path: str, change: Any) -> None:
    """Apply a patch in place; the update time is the current time unless the patch sets it."""
    if sub_path:
        set_path(conf, sub_path, change)
    else:
        merge(conf, change)
    if sub_path or "update_time" not in change:
        conf["update_time"] = int(time.time())


def merge(target: Body, change: Any) -> None:
    """Merge deeply in place: null deletes, objects merge, everything else replaces."""
    for name, value in _as_table(change).items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict) and isinstance(target.get(name), dict) and target[name]:
            merge(target[name], value)
        else:
            target[name] = value


def set_path(conf: Body, path: str, value: Any) -> None:
    """Replace the value at a sub-path; missing parents are created, null deletes."""
    *parents, last = [part for part in path.split("/") if part]
    holder: Any = conf
    for part in parents:
        holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
        if not isinstance(holder, dict | list):
            raise Refused("invalid sub-path")
    if isinstance(holder, list):
        holder[int(last)] = value
    elif value is None:
        holder.pop(last, None)
    else:
        holder[last] = value
