"""The objects of an API server and requests for them, without a network: lists, CRUD, versions, history.

Lists with limit and continue, optimistic locking, patches and the status subresource behave as kube-apiserver does.
`apiserver` serves the requests and watches.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.fakes.kube import wire
from tests.fakes.kube.faults import Refusal, Seen
from tests.fakes.kube.kinds import KINDS, Kind, Manifest, Name
from tests.fakes.kube.patches import json_patch, merge_patch

_TYPE_FIELDS = ("kind", "apiVersion")


@dataclass(slots=True)
class Change:
    """One change of an object."""

    version: int
    type: str
    plural: str
    item: Manifest


class Objects:
    """The objects; they are changed from outside with `put` and `remove`."""

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self.kinds = {kind.plural: kind for kind in kinds}
        self.version = 1000
        self.compacted = 0
        self._items: dict[str, dict[Name, Manifest]] = {}
        self._changes: list[Change] = []
        self._snapshots: dict[str, tuple[int, list[Manifest]]] = {}

    # From outside.

    def put(self, manifest: Manifest, *, status: bool = True) -> Manifest:
        """Create or replace an object, including its status."""
        kind = self._kind_of(manifest)
        name = _name_of(manifest, kind)
        before = self._items.get(kind.plural, {}).get(name)
        return self._store(kind, name, manifest, before=before, keep_status=not status)

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete an object; watchers get an event."""
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
        """Continue from a smaller version, as after a restored backup."""
        self.version = version
        self.compacted = 0
        self._changes.clear()

    def install(self, kind: Kind) -> None:
        """Serve a kind."""
        self.kinds[kind.plural] = kind

    def uninstall(self, plural: str) -> Kind:
        """Stop serving a kind without an event; its objects are lost."""
        self._items.pop(plural, None)
        return self.kinds.pop(plural)

    # Requests.

    def respond(self, seen: Seen) -> Manifest:
        """Handle a request other than a watch and return the response; raises Refusal."""
        plural, namespace, name, subresource = self.parse(seen.path)
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

    def parse(self, path: str) -> tuple[str, str, str, str]:
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
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return {"kind": "APIGroupList", "groups": [self._group(version) for version in self._group_versions()]}
        found = [kind for kind in self.kinds.values() if kind.root == path]
        if not found:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        resources = [{"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced} for kind in found]
        return {"kind": "APIResourceList", "groupVersion": found[0].api_version, "resources": resources}

    def _group_versions(self) -> list[str]:
        return sorted({kind.api_version for kind in self.kinds.values() if "/" in kind.api_version})

    def _group(self, version: str) -> Manifest:
        """Return the entry of one version in the list of all groups; the real one has one for all of a group."""
        group, _, short = version.partition("/")
        return {"name": group, "versions": [{"groupVersion": version, "version": short}]}

    # Verbs.

    def _list(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Manifest:
        limit = int(query.get("limit") or 0)
        if token := query.get("continue"):
            snapshot, start = json.loads(base64.urlsafe_b64decode(token))
        else:
            snapshot, start = self._snapshot(kind, namespace, query.get("fieldSelector", "")), 0
        version, items = self._snapshots[snapshot]
        if version < self.compacted:
            raise Refusal(410, "Expired", "The provided continue parameter is too old")
        end = start + limit if limit else len(items)
        meta: Manifest = {"resourceVersion": str(version)}
        if end < len(items):
            meta["continue"] = base64.urlsafe_b64encode(json.dumps([snapshot, end]).encode()).decode()
        page = [{key: value for key, value in item.items() if key not in _TYPE_FIELDS} for item in items[start:end]]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": page}

    def _snapshot(self, kind: Kind, namespace: str, fields: str) -> str:
        """Keep the objects as they are now, for all pages of a list; return its name."""
        items = [wire.copied(item) for key, item in sorted(self._items.get(kind.plural, {}).items())]
        items = [item for item in items if namespace in ("", item["metadata"].get("namespace"))]
        if only := fields.partition("metadata.name=")[2]:
            items = [item for item in items if item["metadata"]["name"] == only]
        name = str(len(self._snapshots))
        self._snapshots[name] = (self.version, items)
        return name

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
        item = wire.copied(manifest)
        old = (before or {}).get("metadata", {})
        meta = item["metadata"]
        if keep_status and before is not None:
            item.pop("status", None)
            item.update({"status": wire.copied(before["status"])} if "status" in before else {})
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

    def _publish(self, type: str, plural: str, item: Manifest) -> Change:
        """Record a change and notify the watches."""
        change = Change(self.version, type, plural, wire.copied(item))
        self._changes.append(change)
        return change

    def _of(self, plural: str) -> list[Change]:
        return [change for change in self._changes if change.plural == plural]

    def _line(self, kind: Kind, order: Change | bytes | str) -> bytes:
        if isinstance(order, bytes):
            return order
        if isinstance(order, Change):
            item = {"kind": kind.kind, "apiVersion": kind.api_version, **order.item}
            return wire.event(order.type, item)
        meta = {"resourceVersion": str(self.version)}
        return wire.event("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})

    def _kind_of(self, manifest: Manifest) -> Kind:
        return next(kind for kind in self.kinds.values() if kind.kind == manifest["kind"])


def _balancer(item: Manifest) -> object:
    """Return the one field whose manager is kept."""
    return ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress")


def _name_of(manifest: Manifest, kind: Kind) -> Name:
    meta = manifest["metadata"]
    if not kind.namespaced:
        return ("", meta["name"])
    meta.setdefault("namespace", "default")
    return (meta["namespace"], meta["name"])


def _without_version(item: Manifest) -> Manifest:
    meta = {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}
    return {**item, "metadata": meta}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
