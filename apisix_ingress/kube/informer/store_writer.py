"""The way of an object into a store: raw JSON is trimmed, and what changed is stored.

An object that can't be read is reported and skipped: what was stored of it stays. One that is only nested too deeply
keeps the spec that was stored, with its new metadata, so that its status can say what is wrong. When something is read,
and what is to be deleted, is decided in `reflector` and `listing`.
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
    """Puts objects of one kind into a store.

    Args:
        resource: The kind.
        store: Its store, or the portion of it for a namespace.
        observer: Told of changes, and of objects that can't be read.
        silent: Told of each object that the store took without telling anybody: it is equal in all that is compared.
        yield_every: Objects in a row before other tasks get their turn.
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
        """The kind in the version that is read now."""
        self._store = store
        self._observer = observer
        self._silent = silent
        self.yield_every = yield_every
        self._undecodable: dict[ObjectKey, str] = {}

    def decode(self, raw: JsonObject) -> KubeObject | None:
        """Return the trimmed object, or None for one that can't be read: what was stored of it stays."""
        try:
            # Only custom resources have fields of any shape; notes on these in the metadata are not read.
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
        """Return an object with the spec that was read last.

        Raises:
            DECODE_ERRORS: Not even its metadata can be read.
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
        """Forget an object."""
        if self._store.delete(key):
            self._observer.changed(self.resource.kind, "delete")

    def remove(self, key: ObjectKey) -> None:
        """Forget an object of which an event says that it is gone, also that it could not be read."""
        self._undecodable.pop(key, None)
        self.delete(key)

    async def empty(self) -> None:
        """Forget all objects."""
        async for key in in_turns(self._store.keys(), every=self.yield_every):
            self.delete(key)

    def keep_reports(self, seen: set[ObjectKey]) -> None:
        """Forget which objects can't be read but for these; one that comes again is told of again."""
        self._undecodable = {key: version for key, version in self._undecodable.items() if key in seen}

    def _report(self, raw: JsonObject, error: Exception) -> None:
        """Tell of an object that can't be read, once for each version of it."""
        key = key_of(self.resource, raw)
        name = key or ObjectKey(self.resource.kind, "", "?")
        version = version_of(raw) if key else ""
        if self._undecodable.get(name) == version:
            return
        self._undecodable[name] = version
        self._observer.undecodable(self.resource.kind)
        # The text of some errors quotes the value; of a Secret the class has to be enough.
        detail = "" if self.resource.kind == "Secret" else f": {str(error)[:200]}"
        log.warning("object.undecodable", object=str(name), version=version, error=type(error).__name__ + detail)


def _depth_problem(raw: JsonObject) -> str:
    """Return what is wrong with the depth of an object, or nothing."""
    try:
        check_depth({**raw, "metadata": None})
    except ValueError as error:
        return str(error)
    return ""
