"""The Admin API over HTTP: paths, keys, bodies and responses; `reads` and `writes` process the requests."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, unquote

from e2e.devgateway.adminapi.extras import Extras
from e2e.devgateway.adminapi.reads import PlainRefused, Reader
from e2e.devgateway.adminapi.record_kinds import RESOURCES, Refused
from e2e.devgateway.adminapi.replies import CORS, Answer, json_answer, page_answer, text_answer
from e2e.devgateway.adminapi.writes import MISSING, Call, InternalError, Writer
from e2e.devgateway.dataplane.error_pages import TEXT
from e2e.devgateway.dataplane.http1 import Request
from e2e.devgateway.etcd import EtcdDown
from e2e.devgateway.references import References
from e2e.devgateway.schemas.json_text import BadJson, decode
from e2e.devgateway.store import Store

log = logging.getLogger(__name__)

PREFIX = "/apisix/admin"
BODY_LIMIT = 1_572_864
DEFAULT_ADMIN_KEY = "edd1c9f034335f136f87ad84b625c8f1"
DEFAULT_VIEWER_KEY = "4054f7cf07e344346cd3f287985e76a2"
"""The default keys of old APISIX configurations, which are public."""

V3 = ("X-API-VERSION", "v3")
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")


class Unauthorized(Exception):
    """The key is missing, wrong or too weak."""


class Admin:
    """Handles the requests of the Admin API."""

    def __init__(
        self,
        store: Store,
        references: References,
        *,
        admin_key: str = DEFAULT_ADMIN_KEY,
        viewer_key: str = DEFAULT_VIEWER_KEY,
        stream: bool = True,
    ) -> None:
        self._keys = {admin_key: "admin", viewer_key: "viewer"}
        self._stream = stream
        self._reader = Reader(store)
        self._writer = Writer(store, references)
        self._extras = Extras(references)

    async def answer(self, request: Request) -> Answer:
        """Return the response to one request."""
        raw_path, _, raw_query = request.target.partition("?")
        path = unquote(raw_path)
        query = dict(parse_qsl(raw_query, keep_blank_values=True))
        if path == PREFIX and request.method == "HEAD":
            return text_answer(200, "")
        if not path.startswith(PREFIX + "/"):
            return page_answer(404)
        if request.method == "OPTIONS":
            return 200, [*TEXT, CORS], b""
        if request.method not in METHODS:
            return page_answer(404)
        try:
            authorize(request, query, self._keys)
            return await self._dispatch(request, path.removeprefix(PREFIX + "/").split("/"), query)
        except Unauthorized as error:
            return unauthorized(error)
        except Refused as error:
            return json_answer(error.status, error.body, V3)
        except PlainRefused as error:
            return text_answer(400, str(error), V3)
        except EtcdDown:
            return json_answer(503, {"error_msg": "has no healthy etcd endpoint available"}, V3)
        except InternalError:
            return page_answer(500)
        except Exception:  # as in the gateway, an internal error results in an error page, and serving continues
            log.exception("request %s %s failed", request.method, path)
            return page_answer(500)

    async def _dispatch(self, request: Request, segments: list[str], query: dict[str, str]) -> Answer:
        kind, *rest = segments
        if not kind:
            raise InternalError
        if extra := await self._extra(request, kind, rest, query):
            return extra
        if kind == "stream_routes" and not self._stream:
            return json_answer(400, {"error_msg": "stream mode is disabled, can not add stream routes"})
        name, sub_path = (rest[0] or None) if rest else None, "/".join(rest[1:])
        if kind == "consumers" and len(rest) >= 2 and rest[1] == "credentials":
            kind, sub_path = "credentials", "/".join([rest[0], *rest[1:]])
            name = (rest[2] or None) if len(rest) > 2 else None
        resource = RESOURCES.get(kind)
        if resource is None:
            return json_answer(404, {"error_msg": f"Unsupported resource type: {kind}"})
        call = Call(resource, name, sub_path, _body(request), query)
        if "ttl" in query and not _is_number(query["ttl"]):
            raise Refused("invalid argument ttl: should be a number")
        if request.method in resource.unsupported:
            raise Refused(f"not supported `{request.method}` method for {resource.label}", 405)
        status, body = await self._operation(request.method)(call)
        return json_answer(status, body, V3)

    async def _extra(self, request: Request, kind: str, rest: list[str], query: dict[str, str]) -> Answer | None:
        if kind == "schema" and rest[:1] == ["validate"] and request.method == "POST":
            return self._extras.validate_one("/".join(rest[1:]), _body(request))
        if kind == "configs" and rest == ["validate"] and request.method == "POST":
            return await self._extras.validate_all(_body(request))
        if kind == "schema":
            return self._extras.schema(rest, query)
        if kind == "plugins":
            return self._extras.plugins(request.method, rest, query)
        return None

    def _operation(self, method: str) -> Callable[[Call], Awaitable[tuple[int, dict[str, Any]]]]:
        return {
            "GET": self._reader.get,
            "PUT": self._writer.put,
            "POST": self._writer.post,
            "PATCH": self._writer.patch,
            "DELETE": self._writer.delete,
        }[method]


def authorize(request: Request, query: dict[str, str], keys: dict[str, str]) -> None:
    """Check the key of a request; raises Unauthorized."""
    key = request.get("x-api-key") or query.get("api_key") or _cookie(request, "x_api_key")
    if not key:
        raise Unauthorized("missing apikey")
    role = keys.get(key)
    if role is None:
        raise Unauthorized("wrong apikey")
    if role == "viewer" and request.method != "GET":
        raise Unauthorized("invalid method for role viewer")


def unauthorized(error: Unauthorized) -> Answer:
    """Return the response to a request without a valid key."""
    return json_answer(401, {"error_msg": "failed to check token", "description": str(error)})


def _cookie(request: Request, name: str) -> str | None:
    for part in (request.get("cookie") or "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _body(request: Request) -> Any:
    """Decode the body; MISSING without one."""
    if not request.body:
        return MISSING
    if len(request.body) > BODY_LIMIT:
        size = len(request.body)
        raise Refused(
            f"invalid request body: request size {size} is greater than the maximum size {BODY_LIMIT} allowed"
        )
    try:
        return decode(request.body)
    except BadJson as error:
        refused = Refused(f"invalid request body: {error}")
        refused.body["req_body"] = request.body.decode("utf-8", "replace")
        raise refused from error
