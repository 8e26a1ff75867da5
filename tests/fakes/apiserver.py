"""An API server in this process, over real HTTP: enough of the protocol for clients that watch, and faults on demand.

Lists with limit and continue, watches with replay and bookmarks, 410 after a compaction, CRUD with optimistic locking,
merge patches and the status subresource behave as kube-apiserver does; `e2e/test_kube_client.py` runs the same cases
against the real one. Admission, defaulting, RBAC and schemas are not there: faults say what is forbidden.
"""

import asyncio
import base64
import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from aiohttp import web

from tests.canary import marked

Manifest = dict[str, Any]
Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is served."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True
    status: bool = True

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"


KINDS = (
    Kind("Namespace", "v1", "namespaces", namespaced=False),
    Kind("Service", "v1", "services"),
    Kind("Endpoints", "v1", "endpoints", status=False),
    Kind("Pod", "v1", "pods"),
    Kind("Secret", "v1", "secrets", status=False),
    Kind("ConfigMap", "v1", "configmaps", status=False),
    Kind("Event", "v1", "events", status=False),
    Kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices", status=False),
    Kind("Ingress", "networking.k8s.io/v1", "ingresses"),
    Kind("IngressClass", "networking.k8s.io/v1", "ingressclasses", namespaced=False, status=False),
    Kind("Lease", "coordination.k8s.io/v1", "leases", status=False),
    Kind("ApisixRoute", "apisix.apache.org/v2", "apisixroutes"),
    Kind("ApisixUpstream", "apisix.apache.org/v2", "apisixupstreams"),
    Kind("ApisixPluginConfig", "apisix.apache.org/v2", "apisixpluginconfigs"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in. `verb` is the one of RBAC: get, list, watch, create, update, patch or delete."""

    verb: str
    plural: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: Any = None


@dataclass(slots=True)
class Fault:
    """What goes wrong for matching requests.

    Attributes:
        verb: As in `Seen`, or `*`.
        plural: Of the kind, or `*`.
        status: Answer with this status; 0: answer as usual, after the delay.
        body: Text of that answer; None: a Status object.
        retry_after: Header of that answer, seconds.
        delay: Seconds before anything happens.
        apply: Carry the request out all the same: its reply is what gets lost.
        cut: Close the connection instead of answering.
        hang: Never answer.
        when: Further condition.
        times: How many requests it hits; None: all.
    """

    verb: str = "*"
    plural: str = "*"
    status: int = 0
    body: str | None = None
    retry_after: str | None = None
    delay: float = 0.0
    apply: bool = False
    cut: bool = False
    hang: bool = False
    when: Callable[[Seen], bool] | None = None
    times: int | None = None

    def hits(self, seen: Seen) -> bool:
        """Say whether it applies to a request, and count it if so."""
        if self.verb not in ("*", seen.verb) or self.plural not in ("*", seen.plural) or self.times == 0:
            return False
        if self.when is not None and not self.when(seen):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Refusal(Exception):
    """An answer other than success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(slots=True)
class _Change:
    version: int
    type: str
    plural: str
    item: Manifest


@dataclass(slots=True, eq=False)
class _Watch:
    """An open watch; `orders` are changes to send, raw bytes, or a word."""

    plural: str
    namespace: str
    since: int
    orders: "asyncio.Queue[_Change | bytes | str]"


class FakeApiServer:
    """The server; an async context manager. Objects are changed from outside with `put` and `remove`."""

    def __init__(self, kinds: Iterable[Kind] = KINDS, *, token: str = "") -> None:
        self.kinds = {kind.plural: kind for kind in kinds}
        self.token = token
        """The bearer token that is accepted; empty: any, and none."""
        self.version = 1000
        self.compacted = 0
        self.bookmarks = True
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.port = 0
        self._items: dict[str, dict[Name, Manifest]] = {}
        self._changes: list[_Change] = []
        self._snapshots: dict[str, tuple[int, list[Manifest]]] = {}
        self._watches: set[_Watch] = set()
        self._runner: web.AppRunner | None = None

    # Life.

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; after a `stop` on the same port, with the same objects."""
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        for watch in list(self._watches):
            watch.orders.put_nowait("cut")
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self, path: Path, *, user: Mapping[str, Any] | None = None) -> Path:
        """Write a kubeconfig for it."""
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                    "users": [{"name": "tester", "user": dict(user or {"token": self.token or marked("api-token")})}],
                    "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "tester"}}],
                    "current-context": "fake",
                }
            )
        )
        return path

    # Objects, from outside.

    def put(self, manifest: Manifest, *, status: bool = True) -> Manifest:
        """Create an object or replace it whole, status included."""
        kind = self._kind_of(manifest)
        name = _name_of(manifest, kind)
        before = self._items.get(kind.plural, {}).get(name)
        return self._store(kind, name, manifest, before=before, keep_status=not status)

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete an object; watchers are told."""
        key = (namespace if self.kinds[plural].namespaced else "", name)
        self._delete(plural, key)

    def forget(self, plural: str, name: str, namespace: str = "default") -> None:
        """Lose an object without an event, as a restored backup would; watches do not see it."""
        del self._items[plural][(namespace if self.kinds[plural].namespaced else "", name)]
        self.version += 1

    def get(self, plural: str, name: str, namespace: str = "default") -> Manifest | None:
        """Return an object or None."""
        key = (namespace if self.kinds[plural].namespaced else "", name)
        return self._items.get(plural, {}).get(key)

    def all(self, plural: str) -> list[Manifest]:
        """Return all objects of a kind."""
        return list(self._items.get(plural, {}).values())

    def compact(self) -> None:
        """Forget all history: watches from an older version and older continue tokens get 410."""
        self.compacted = self.version
        self._changes.clear()

    def roll_back(self, version: int) -> None:
        """Count on from a smaller version, as after a restored backup."""
        self.version = version
        self.compacted = 0
        self._changes.clear()

    def install(self, kind: Kind) -> None:
        """Serve a kind."""
        self.kinds[kind.plural] = kind

    def uninstall(self, plural: str) -> Kind:
        """Stop serving a kind, without a word to its watchers; its objects are lost."""
        self._items.pop(plural, None)
        return self.kinds.pop(plural)

    # Open watches, from outside.

    def order(self, plural: str, order: bytes | str) -> int:
        """Tell the open watches of a kind: raw bytes to send, `end`, `cut`, `bookmark` or `stall`; return how many."""
        chosen = [watch for watch in self._watches if watch.plural == plural]
        for watch in chosen:
            watch.orders.put_nowait(order)
        return len(chosen)

    def watching(self, plural: str) -> int:
        """Return how many watches of a kind are open."""
        return sum(watch.plural == plural for watch in self._watches)

    def count(self, verb: str, plural: str) -> int:
        """Return how many requests of a kind came in."""
        return sum(seen.verb == verb and seen.plural == plural for seen in self.seen)

    # HTTP.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = await self._note(request)
        for fault in self.faults:
            if fault.hits(seen):
                return await self._fail(fault, request, seen)
        return await self._answer(request, seen)

    async def _note(self, request: web.Request) -> Seen:
        text = await request.text()
        plural, _, name, _ = self._parse(request.path)
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "get")
        if verb == "get" and plural and not name:
            verb = "watch" if request.query.get("watch") in ("true", "1") else "list"
        body = json.loads(text) if text else None
        seen = Seen(verb, plural, request.path, dict(request.query), dict(request.headers), body)
        self.seen.append(seen)
        return seen

    async def _fail(self, fault: Fault, request: web.Request, seen: Seen) -> web.StreamResponse:
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.apply:
            await self._answer(request, seen)
        if fault.hang:
            await asyncio.Event().wait()
        if fault.cut:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if not fault.status:
            return await self._answer(request, seen)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        if fault.body is not None:
            return web.Response(status=fault.status, text=fault.body, content_type="text/html", headers=headers)
        return _refuse(Refusal(fault.status, "Fault", f"fault: {seen.verb} {seen.plural}"), headers)

    async def _answer(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        try:
            if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refusal(401, "Unauthorized", "Unauthorized")
            if seen.verb == "watch" and seen.plural in self.kinds:
                return await self._watch(request, seen)
            return web.json_response(self._respond(seen), status=201 if seen.verb == "create" else 200)
        except Refusal as refusal:
            return _refuse(refusal)

    def _respond(self, seen: Seen) -> Manifest:
        plural, namespace, name, subresource = self._parse(seen.path)
        if not plural:
            return self._discover(seen.path)
        kind = self.kinds.get(plural)
        if kind is None or not seen.path.startswith(kind.root + "/"):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if subresource not in ("", "status") or (subresource and not kind.status):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        key = (namespace, name)
        match seen.verb:
            case "list":
                return self._list(kind, namespace, seen.query)
            case "create":
                return self._create(kind, namespace, seen.body)
            case "update":
                return self._update(kind, key, seen.body, subresource)
            case "patch":
                return self._patch(kind, key, seen, subresource)
            case "delete":
                return self._delete(kind.plural, key)
            case _:
                return self._find(kind.plural, key)

    def _parse(self, path: str) -> tuple[str, str, str, str]:
        """Return plural, namespace, name and subresource of a path; no plural: discovery."""
        parts = path.strip("/").split("/")
        rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "", "")[:3]
        return plural, namespace, name, subresource

    def _discover(self, path: str) -> Manifest:
        if path == "/version":
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.4"}
        found = [kind for kind in self.kinds.values() if kind.root == path]
        if not found:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        resources = [{"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced} for kind in found]
        return {"kind": "APIResourceList", "groupVersion": found[0].api_version, "resources": resources}

    # Verbs.

    def _list(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Manifest:
        limit = int(query.get("limit") or 0)
        start = 0
        if token := query.get("continue"):
            snapshot, start = json.loads(base64.urlsafe_b64decode(token))
            version, items = self._snapshots[snapshot]
            if version < self.compacted:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
        else:
            items = [copy.deepcopy(item) for key, item in sorted(self._items.get(kind.plural, {}).items())]
            items = [item for item in items if namespace in ("", item["metadata"].get("namespace"))]
            if only := query.get("fieldSelector", "").partition("metadata.name=")[2]:
                items = [item for item in items if item["metadata"]["name"] == only]
            version, snapshot = self.version, str(len(self._snapshots))
            self._snapshots[snapshot] = (version, items)
        end = start + limit if limit else len(items)
        meta: Manifest = {"resourceVersion": str(version)}
        if end < len(items):
            meta["continue"] = base64.urlsafe_b64encode(json.dumps([snapshot, end]).encode()).decode()
        page = [{key: value for key, value in item.items() if key not in _TYPE_FIELDS} for item in items[start:end]]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": page}

    def _create(self, kind: Kind, namespace: str, body: Manifest) -> Manifest:
        meta = body["metadata"]
        if meta.get("namespace", namespace) != namespace:
            raise Refusal(400, "BadRequest", "the namespace of the object does not match the namespace of the URL")
        if "name" not in meta:
            self.version += 1
            meta["name"] = f"{meta['generateName']}{self.version:x}"
        key = (namespace, meta["name"])
        if key in self._items.get(kind.plural, {}):
            raise Refusal(409, "AlreadyExists", f'{kind.plural} "{meta["name"]}" already exists')
        created = {**body, "metadata": {**meta, **({"namespace": namespace} if namespace else {})}}
        if kind.status:
            created.pop("status", None)
        return self._store(kind, key, created, before=None)

    def _update(self, kind: Kind, key: Name, body: Manifest, subresource: str) -> Manifest:
        before = self._find(kind.plural, key)
        self._lock(before, body)
        return self._store_part(kind, key, before, body, subresource)

    def _patch(self, kind: Kind, key: Name, seen: Seen, subresource: str) -> Manifest:
        before = self._find(kind.plural, key)
        wanted = self._patched(before, seen)
        if subresource == "status" and _balancer(wanted) != _balancer(before):
            fields: Manifest = {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
            manager = {"manager": seen.query.get("fieldManager") or "unknown", "fieldsV1": fields}
            before = {**before, "metadata": {**before["metadata"], "managedFields": [manager]}}
        return self._store_part(kind, key, before, wanted, subresource)

    def _patched(self, before: Manifest, seen: Seen) -> Manifest:
        match seen.headers.get("Content-Type"):
            case "application/merge-patch+json":
                self._lock(before, seen.body)
                wanted: Manifest = merge_patch(before, seen.body)
                return wanted
            case "application/json-patch+json":
                try:
                    return json_patch(before, seen.body)
                except ValueError as error:
                    raise Refusal(422, "Invalid", f"the server rejected our request: {error}") from None
        raise Refusal(415, "UnsupportedMediaType", "only merge patches and JSON patches are supported")

    def _store_part(self, kind: Kind, key: Name, before: Manifest, wanted: Manifest, subresource: str) -> Manifest:
        if not kind.status:
            return self._store(kind, key, wanted, before=before)
        if subresource == "status":
            return self._store(kind, key, {**before, "status": wanted.get("status")}, before=before)
        return self._store(kind, key, wanted, before=before, keep_status=True)

    def _lock(self, before: Manifest, body: Manifest) -> None:
        asked = (body.get("metadata") or {}).get("resourceVersion")
        if asked is not None and asked != before["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified; please apply your changes to the latest")

    def _store(
        self, kind: Kind, key: Name, manifest: Manifest, *, before: Manifest | None, keep_status: bool = False
    ) -> Manifest:
        item = copy.deepcopy(manifest)
        old = (before or {}).get("metadata", {})
        meta = item["metadata"]
        if keep_status and before is not None:
            item.pop("status", None)
            item.update({"status": copy.deepcopy(before["status"])} if "status" in before else {})
        meta.pop("resourceVersion", None)
        meta["uid"] = old.get("uid") or meta.get("uid") or f"uid-{self.version + 1}"
        meta["creationTimestamp"] = old.get("creationTimestamp") or meta.get("creationTimestamp") or _now()
        changed = before is not None and before.get("spec") != item.get("spec")
        if "spec" in item:
            meta["generation"] = old.get("generation", 0 if before is None else 1) + (before is None or changed)
        if before is not None and _without_version(before) == item:
            return before
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        self._items.setdefault(kind.plural, {})[key] = item
        self._publish("MODIFIED" if before else "ADDED", kind.plural, item)
        return item

    def _delete(self, plural: str, key: Name) -> Manifest:
        item = self._find(plural, key)
        del self._items[plural][key]
        self.version += 1
        last = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        self._publish("DELETED", plural, last)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def _find(self, plural: str, key: Name) -> Manifest:
        item = self._items.get(plural, {}).get(key)
        if item is None:
            raise Refusal(404, "NotFound", f'{plural} "{key[1]}" not found')
        return item

    def _publish(self, type: str, plural: str, item: Manifest) -> None:
        change = _Change(self.version, type, plural, copy.deepcopy(item))
        self._changes.append(change)
        for watch in self._watches:
            if watch.plural == plural and _is_in(watch.namespace, item):
                watch.orders.put_nowait(change)

    # Watches.

    async def _watch(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        kind = self.kinds[seen.plural]
        since = int(seen.query.get("resourceVersion") or 0)
        if since < self.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {since} ({self.compacted})")
        namespace = self._parse(seen.path)[1]
        watch = _Watch(kind.plural, namespace, self.version, asyncio.Queue())
        for change in self._changes:
            if change.plural == kind.plural and change.version > since and _is_in(namespace, change.item):
                watch.orders.put_nowait(change)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._watches.add(watch)
        try:
            await response.prepare(request)
            await self._serve(watch, kind, request, response, float(seen.query.get("timeoutSeconds") or 300))
        finally:
            self._watches.discard(watch)
        return response

    async def _serve(
        self, watch: _Watch, kind: Kind, request: web.Request, response: web.StreamResponse, seconds: float
    ) -> None:
        try:
            async with asyncio.timeout(seconds) as bound:
                while True:
                    order = await watch.orders.get()
                    if order == "end":
                        return
                    if order == "stall":
                        bound.reschedule(None)
                        await asyncio.Event().wait()
                    if order == "cut":
                        if request.transport is not None:
                            request.transport.abort()
                        return
                    await response.write(self._line(kind, order))
        except TimeoutError:
            # As the real one, which tells only of versions that are newer than where the watch stood when it began.
            if self.bookmarks and any(change.version > watch.since for change in self._of(kind.plural)):
                await response.write(self._line(kind, "bookmark"))

    def _of(self, plural: str) -> list[_Change]:
        return [change for change in self._changes if change.plural == plural]

    def _line(self, kind: Kind, order: _Change | bytes | str) -> bytes:
        if isinstance(order, bytes):
            return order
        if isinstance(order, _Change):
            item = {"kind": kind.kind, "apiVersion": kind.api_version, **order.item}
            return _event(order.type, item)
        meta = {"resourceVersion": str(self.version)}
        return _event("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})

    def _kind_of(self, manifest: Manifest) -> Kind:
        return next(kind for kind in self.kinds.values() if kind.kind == manifest["kind"])


_TYPE_FIELDS = ("kind", "apiVersion")


def _balancer(item: Manifest) -> object:
    """Return the one field whose manager is kept."""
    return ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress")


def json_patch(target: Manifest, operations: Sequence[Manifest]) -> Manifest:
    """Apply `test` and `add` of fields of objects (RFC 6902); ValueError if a test fails."""
    patched = copy.deepcopy(target)
    for operation in operations:
        *parents, name = operation["path"].strip("/").split("/")
        place = patched
        for parent in parents:
            place = place[parent]
        if operation["op"] == "add":
            place[name] = copy.deepcopy(operation["value"])
        elif operation["op"] != "test":
            raise NotImplementedError(operation["op"])
        elif place.get(name) != operation["value"]:
            raise ValueError(f"testing path {operation['path']}: test failed")
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def error_event(code: int, reason: str = "Expired", message: str = "too old resource version") -> bytes:
    """Return the line of an ERROR event."""
    return _event("ERROR", _status(Refusal(code, reason, message)))


def _event(type: str, item: Manifest) -> bytes:
    return json.dumps({"type": type, "object": item}).encode() + b"\n"


def _status(refusal: Refusal) -> Manifest:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": str(refusal),
        "reason": refusal.reason,
        "code": refusal.code,
    }


def _refuse(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(_status(refusal), status=refusal.code, headers=dict(headers or {}))


def _name_of(manifest: Manifest, kind: Kind) -> Name:
    meta = manifest["metadata"]
    if not kind.namespaced:
        return ("", meta["name"])
    meta.setdefault("namespace", "default")
    return (meta["namespace"], meta["name"])


def _without_version(item: Manifest) -> Manifest:
    meta = {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}
    return {**item, "metadata": meta}


def _is_in(namespace: str, item: Manifest) -> bool:
    return namespace in ("", item["metadata"].get("namespace"))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
