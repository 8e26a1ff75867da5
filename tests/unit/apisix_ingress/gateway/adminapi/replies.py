"""An Admin API client, and scripted replies."""

from collections.abc import Awaitable, Callable

import httpx
import orjson
from pydantic import SecretStr

from apisix_ingress.gateway.adminapi.admin_key import SETTINGS, Fields
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record

Handler = Callable[[httpx.Request], httpx.Response]
Call = Callable[[AdminClient], Awaitable[object]]
ROUTE = RecordKey("routes", "1a2b")
WRITTEN = {"key": "/apisix/routes/1a2b", "value": {}}
OFF = {"error_msg": "stream mode is disabled, can not add stream routes"}


def make_backend(
    handler: Handler, *, key: AdminKey | None = None, timeout: float = 5.0, fields: Fields = SETTINGS
) -> AdminClient:
    key = key or AdminKey(lambda: SecretStr("sesame-key"))
    url, transport = "http://gateway/apisix/admin", httpx.MockTransport(handler)
    return AdminClient(url, key, controller="apisix-ingress", timeout=timeout, transport=transport, fields=fields)


def make_record(kind: RecordKind = "routes", **body: object) -> Record:
    return Record(RecordKey(kind, "1a2b"), "default_web_r", {"id": "1a2b", **body})


def replying(status: int, body: object = None, headers: dict[str, str] | None = None) -> Handler:
    content = body if isinstance(body, str) else orjson.dumps(body).decode()
    return lambda request: httpx.Response(status, text=content, headers=headers)


def listing(**kinds: object) -> Handler:
    """Respond to each list with its document, or an empty list."""

    def handle(request: httpx.Request) -> httpx.Response:
        kind = request.url.path.rpartition("/")[2]
        given = kinds.get(kind, {"list": [], "total": 0})
        return given if isinstance(given, httpx.Response) else httpx.Response(200, json=given)

    return handle


def item(kind: str, id_: str, **body: object) -> JsonObject:
    return {"key": f"/apisix/{kind}/{id_}", "value": {"id": id_, **body}, "createdIndex": 1, "modifiedIndex": 2}
