"""Writes objects into a store: trims raw JSON and stores what changed.

An object that cannot be decoded is reported and skipped; the stored version stays. An object that is only nested too
deeply keeps the stored spec, with its new metadata, so that its status can report the problem. `reflector` and `relist`
decide when to read objects and which to delete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog

from apisix_ingress.kube.client.json_depth import DEEPEST, check_depth, is_deep
from apisix_ingress.kube.informer.watch_events import ReflectorObserver, key_of, version_of
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, DECODE_ERRORS
from apisix_ingress.model.objects import UNREAD, CustomObject, KubeObject, Unread
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.namespaced_store import Fillable

log = structlog.get_logger()


class StoreWriter:
    """Writes objects of one kind into a store.

    Args:
        resource: The kind.
        store: Its store, or a namespace's part of it.
        observer: Called for changes and for objects that cannot be decoded.
        silent: Called with each object that replaced an equal one, for which the store sends no notification.
        yield_every: Objects in a row before other tasks run.
    """

    def __init__(
        self,
        resource: Resource,
        store: Fillable,
        *,
        observer: ReflectorObserver,
        silent: Callable[[KubeObject], None],
        yield_every: int,
    ) -> None:
        self.resource = resource
        """The kind, in the API version that is read now."""
        self._store = store
        self._observer = observer
        self._silent = silent
        self.yield_every = yield_every
        self._undecodable: dict[ObjectKey, str] = {}

    def decode(self, raw: JsonObject) -> KubeObject | None:
        """Return the trimmed object, or None if it cannot be decoded; then the stored version stays."""
        try:
            # Only custom resources have fields without a schema. Metadata is not decoded in depth.
            if self.resource.group == CUSTOM_GROUP and (reason := _depth_problem(raw)):
                self._report(raw, ValueError(reason))
                return self._unread(raw, reason)
            item = self.resource.decode(raw)
        except DECODE_ERRORS as error:
            self._report(raw, error)
            return None
        self._undecodable.pop(item.meta.key, None)
        return item

    def _unread(self, raw: JsonObject, reason: str) -> KubeObject:
        """Return the object with the last spec that could be decoded.

        Raises:
            DECODE_ERRORS: Not even its metadata can be decoded.
        """
        status, spec = raw.get("status"), raw.get("spec")
        class_name = spec.get("ingressClassName") if isinstance(spec, dict) else None
        rest: JsonObject = {UNREAD: reason, **({"ingressClassName": class_name} if isinstance(class_name, str) else {})}
        small = {"metadata": raw.get("metadata"), "spec": rest, "status": None if is_deep(status, DEEPEST) else status}
        item = self.resource.decode(small)
        if not isinstance(item, CustomObject):
            return item
        known = self._store.get(item.meta.key)
        if not isinstance(known, CustomObject):
            return replace(item, unread=Unread(reason, 0))
        generation = known.unread.generation if known.unread else known.meta.generation
        return replace(item, spec=known.spec if generation else item.spec, unread=Unread(reason, generation))

    def put(self, item: KubeObject) -> None:
        """Store an object."""
        known = self._store.get(item.meta.key) is not None
        if self._store.set(item):
            self._observer.changed(self.resource.kind, "update" if known else "add")
        else:
            self._silent(item)

    def delete(self, key: ObjectKey) -> None:
        """Delete an object."""
        if self._store.delete(key):
            self._observer.changed(self.resource.kind, "delete")

    def remove(self, key: ObjectKey) -> None:
        """Delete an object after a delete event, and forget whether it could not be decoded."""
        self._undecodable.pop(key, None)
        self.delete(key)

    async def empty(self) -> None:
        """Delete all objects."""
        async for key in in_turns(self._store.keys(), every=self.yield_every):
            self.delete(key)

    def keep_reports(self, seen: set[ObjectKey]) -> None:
        """Forget objects that could not be decoded and are not in `seen`; if one comes back, report it again."""
        self._undecodable = {key: version for key, version in self._undecodable.items() if key in seen}

    def _report(self, raw: JsonObject, error: Exception) -> None:
        """Report an object that cannot be decoded, once per resourceVersion."""
        key = key_of(self.resource, raw)
        name = key or ObjectKey(self.resource.kind, "", "?")
        version = version_of(raw) if key else ""
        if self._undecodable.get(name) == version:
            return
        self._undecodable[name] = version
        self._observer.undecodable(self.resource.kind)
        # Some errors quote the value, so log only the class for a Secret.
        detail = "" if self.resource.kind == "Secret" else f": {str(error)[:200]}"
        log.warning("object.undecodable", object=str(name), version=version, error=type(error).__name__ + detail)


def _depth_problem(raw: JsonObject) -> str:
    """Return a message if an object is nested too deeply, otherwise an empty string."""
    try:
        check_depth({**raw, "metadata": None})
    except ValueError as error:
        return str(error)
    return ""
