"""Reads of the Admin API: one record, lists with filters and pages."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

from e2e.devgateway.adminapi.record_kinds import NotFound, hide
from e2e.devgateway.adminapi.writes import Call, InternalError
from e2e.devgateway.dataplane.expressions import to_number
from e2e.devgateway.store import PREFIX, Record, Store

Body = dict[str, Any]


class PlainRefused(Exception):
    """The gateway responds with 400 and plain text."""


class Reader:
    """Handles GET requests, reading directly from etcd."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, call: Call) -> tuple[int, Body]:
        """Return one record or a list."""
        prefix, name = self._place(call)
        if name is None:
            return 200, await self._list(call, prefix)
        record = await self._store.get(prefix + name)
        if record is None:
            raise NotFound
        return 200, _shown(call, record)

    def _place(self, call: Call) -> tuple[str, str | None]:
        kind = call.resource.name
        if kind == "credentials":
            return f"{PREFIX}consumers/{call.sub_path.split('/')[0]}/credentials/", call.name
        if kind == "secrets" and call.name:
            return f"{PREFIX}secrets/{call.name}/", call.sub_path.split("/")[0] or None
        return f"{PREFIX}{kind}/", call.name

    async def _list(self, call: Call, prefix: str) -> Body:
        records = await self._store.below(prefix)
        if call.resource.name == "consumers":
            records = [record for record in records if "/" not in record.name]
        records = [record for record in records if matches(call, record)]
        total = len(records)
        page = _page(call.query)
        if page is None:
            return {"total": total, "list": [_shown(call, record) for record in records]}
        number, size = page
        ordered = sorted(records, key=lambda record: record.created)[(number - 1) * size : number * size]
        shown: Any = [_shown(call, record) for record in ordered]
        return {"total": total, "list": shown or {}}  # Lua's empty table: an object


def _shown(call: Call, record: Record) -> Body:
    item = record.as_item()
    item["value"] = hide(call.resource, record.value)
    return item


def _page(query: dict[str, str]) -> tuple[int, int] | None:
    """Return (page, size), or None for the whole list."""
    if "page" not in query or "page_size" not in query:
        return None
    number, size = to_number(query["page"]), to_number(query["page_size"])
    if number is None:
        return None
    if size is None:
        raise InternalError
    if not 10 <= size <= 500:
        raise PlainRefused("page_size must be between 10 and 500")
    return max(1, int(number)), int(size)


def matches(call: Call, record: Record) -> bool:
    """Apply the filters of a list; unknown filters are ignored."""
    query, value = call.query, record.value
    if "name" in query and not _found(query["name"], [value.get("name")]):
        return False
    if "uri" in query and not _found(query["uri"], [value.get("uri"), *value.get("uris", [])]):
        return False
    if "label" in query and query["label"] not in (value.get("labels") or {}):
        return False
    if "filter" in query and call.resource.name == "routes":
        wanted = {name: values[0] for name, values in parse_qs(query["filter"]).items()}
        return all(str(value.get(field)) == wanted[field] for field in ("service_id", "upstream_id") if field in wanted)
    return True


def _found(pattern: str, values: list[Any]) -> bool:
    try:
        return any(isinstance(value, str) and re.search(pattern, value) for value in values)
    except re.error:
        return False
