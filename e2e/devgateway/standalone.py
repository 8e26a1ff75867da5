"""An API-driven standalone gateway: its records are one document in memory, which the Admin API replaces.

The rules are those of APISIX 3.18 (admin/standalone.lua, core/config_yaml.lua, and the recorded answers): a kind with
an unchanged version, and an item with an unchanged `modifiedIndex`, keep what they had.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from e2e.devgateway.adminapi.extras import Extras
from e2e.devgateway.adminapi.replies import CORS, Answer, json_answer, page_answer
from e2e.devgateway.adminapi.service import PREFIX, Unauthorized, authorize, unauthorized
from e2e.devgateway.dataplane.error_pages import JSON
from e2e.devgateway.dataplane.http1 import Request
from e2e.devgateway.references import References
from e2e.devgateway.schemas.json_text import BadJson, decode
from e2e.devgateway.store import PREFIX as KEYS
from e2e.devgateway.store import Body, Record, Records

CONFIGS = f"{PREFIX}/configs"
DIGEST, LAST_MODIFIED = "X-Digest", "X-Last-Modified"
KINDS = (
    *("consumer_groups", "consumers", "global_rules", "plugin_configs", "plugin_metadata", "plugins", "protos"),
    *("routes", "secrets", "services", "ssls", "stream_routes", "upstreams"),
)


class StandaloneAdmin:
    """Handles the requests of the Admin API of a standalone gateway."""

    def __init__(self, records: Records, references: References, *, admin_key: str, memory: int) -> None:
        self._records = records
        self._key = admin_key
        self._extras = Extras(references)
        self._document: Body = {}
        self._memory = memory  # bytes, as the gateway's shared dictionary limits the document

    async def answer(self, request: Request) -> Answer:
        """Return the response to one request."""
        path = request.target.partition("?")[0]
        if not path.startswith(PREFIX + "/"):
            return page_answer(404)
        try:
            authorize(request, {}, {self._key: "admin"})
        except Unauthorized as error:
            return unauthorized(error)
        match request.method, path:
            case "GET", _ if path == CONFIGS:
                return self._with_metadata(json_answer(200, self._shown()))
            case "HEAD", _ if path == CONFIGS:
                return self._with_metadata((200, [*JSON, CORS], b""))
            case "PUT", _ if path == CONFIGS:
                return await self._put(request)
            case "POST", _ if path == f"{CONFIGS}/validate":
                return await self._extras.validate_all(_as_records(decode(request.body)))
            case _:
                return page_answer(404)

    async def wipe(self) -> None:
        """Lose the document, as a restarted gateway does."""
        self._document = {}
        for kind in KINDS:
            self._load(kind, [], 0)

    def _shown(self) -> Body:
        versions = {f"{kind}_conf_version": 0 for kind in KINDS}
        return {**versions, **self._document}

    def _with_metadata(self, answer: Answer) -> Answer:
        status, headers, body = answer
        known = [(name, str(self._document[name])) for name in (LAST_MODIFIED, DIGEST) if name in self._document]
        return status, [*headers, *known], body

    async def _put(self, request: Request) -> Answer:
        digest = request.get(DIGEST.lower())
        if not digest:
            return _bad("missing digest header")
        if not request.body:
            return _bad("invalid request body: empty request body")
        try:
            body = decode(request.body)
        except BadJson as error:
            return _bad(f"invalid request body: {error}")
        if self._document.get(DIGEST) == digest:
            return 204, [CORS], b""
        if (refusal := await self._refusal(body)) is not None:
            return _bad(refusal)
        if len(request.body) > self._memory:
            self._document = {}
            return 500, [*JSON, CORS], b"failed to save config to shared dict: no memory"
        self._replace(body, digest)
        return self._with_metadata((202, [*JSON, CORS], b""))

    async def _refusal(self, body: Body) -> str | None:
        for kind in KINDS:
            name, held = f"{kind}_conf_version", self._document.get(f"{kind}_conf_version", 0)
            version = body.get(name, held + 1)
            if not isinstance(version, int):
                return f"{name} must be a number"
            if version < held:
                return f"{name} must be greater than or equal to ({held})"
        return next((each["error"] for each in await self._extras.errors_in(_as_records(body))), None)

    def _replace(self, body: Body, digest: str) -> None:
        document: Body = {LAST_MODIFIED: int(time.time()), DIGEST: digest}
        for kind in KINDS:
            name, held = f"{kind}_conf_version", self._document.get(f"{kind}_conf_version", 0)
            version = document[name] = body.get(name, held + 1)
            items = self._document.get(kind, []) if version == held else body.get(kind, [])
            if items:
                document[kind] = items
            if version != held:
                self._load(kind, items, version)
        self._document = document

    def _load(self, kind: str, items: list[Body], version: int) -> None:
        """Replace the records of a kind, except items with an unchanged `modifiedIndex`."""
        fresh = dict(_numbered(kind, items, version))
        for name in self._records.kind(kind).keys() - fresh.keys():
            self._records.set(kind, name, None)
        for name, record in fresh.items():
            old = self._records.kind(kind).get(name)
            if old is None or "modifiedIndex" not in record.value or old.modified != record.modified:
                self._records.set(kind, name, record)


def _numbered(kind: str, items: list[Body], version: int) -> Iterator[tuple[str, Record]]:
    for number, item in enumerate(items, 1):
        name = str(item.get("id") or item.get("username") or f"arr_{number}")
        value = {"id": name, **item}
        index = item.get("modifiedIndex", version)
        yield name, Record(f"{KEYS}{kind}/{name}", kind, name, value, 0, index)


def _as_records(body: Body) -> Body:
    """Return a document without what only documents may contain: `modifiedIndex`, and ids of credentials."""
    return {kind: [_as_record(item) for item in items] for kind, items in body.items() if isinstance(items, list)}


def _as_record(item: Body) -> Body:
    record = {name: value for name, value in item.items() if name != "modifiedIndex"}
    if "/credentials/" in (id_ := str(item.get("id"))):
        record["id"] = id_.rpartition("/")[2]
    return record


def _bad(message: Any) -> Answer:
    return json_answer(400, {"error_msg": message})
