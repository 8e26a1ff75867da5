"""The readable text of each log line: it describes the event without its name.

A line keeps its constant event name and its fields; `message` is a sentence, followed by the detail of the line if it
has one. The table has every event of the program; a test compares it with the code.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

SENTENCES = {
    "apiserver.reachable": "the API server responds again",
    "apiserver.unreachable": "the API server cannot be reached",
    "audit.crashed": "the comparison with a gateway cluster crashed",
    "audit.drift": "records in a gateway cluster were changed by other clients and are restored",
    "audit.failed": "a gateway cluster could not be compared with the desired records",
    "audit.foreign": "records with ids of this controller belong to other clients",
    "certificate.kept": "the webhook keeps its previous certificate",
    "certificate.loaded": "the webhook loaded its certificate",
    "check.crashed": "a check of a gateway cluster crashed",
    "check.differs": "a gateway cluster does not have a record that was written to it",
    "cluster.moved": "the address of a gateway cluster changed",
    "cluster.recovered": "a gateway cluster responds again",
    "cluster.redirects": "a gateway cluster redirects requests to another address",
    "cluster.synced": "a gateway cluster has every desired record",
    "cluster.takeover": "a gateway cluster was compared with the desired records",
    "cluster.unauthorized": "a gateway cluster rejects the admin key",
    "cluster.unreachable": "a gateway cluster cannot be reached",
    "controller.started": "the controller started",
    "controller.stopped": "the controller stopped",
    "controller.stopping": "the controller is stopping",
    "credentials.replaced": "the credentials for the API server were renewed",
    "credentials.unreadable": "the credentials for the API server could not be renewed",
    "defaults.unavailable": "a gateway cluster does not publish its schemas",
    "defaults.unknown": "the schemas of a gateway cluster could not be read",
    "deletes.held_back": "an unusual number of deletes is held back",
    "dependents.wake_failed": "objects that depend on a change could not be queued",
    "endpoints.crashed": "the early update of endpoints crashed",
    "endpoints.deferred": "endpoints are updated after everything was translated, because many changed",
    "endpoints.updated": "endpoints that changed while no controller was running were updated",
    "event.dropped": "an Event could not be sent",
    "hosts.adopted": "owners of hosts were restored from the gateways",
    "http.malformed": "a request was malformed",
    "ids.adopted": "record ids were restored from the gateways",
    "leader.observed": "another replica leads",
    "lease.lost": "leadership was lost",
    "lease.not_released": "the Lease could not be released",
    "lease.patch_forbidden": "patching the Lease is forbidden",
    "lease.released": "the Lease was released",
    "lease.unavailable": "the Lease could not be read or renewed",
    "lease.unconfirmed": "the Lease could not be renewed",
    "ledger.unreadable": "the ledger could not be read",
    "ledger.unwritable": "the ledger could not be written",
    "ledger.written": "the ledger was written",
    "log.incomplete": "log lines were dropped",
    "loop.errors_left_out": "further errors were not logged",
    "manifest.broken": "a manifest cannot be read",
    "manifest.ignored": "objects of an unsupported kind were skipped",
    "manifest.unknown_field": "a field of a manifest has no effect",
    "manifest.unread": "an object in a manifest was skipped",
    "manifests.read": "the manifests were read",
    "object.problem": "an object has a problem",
    "object.problems_left_out": "further problems of an object were not logged",
    "object.translate_failed": "the translation of an object crashed",
    "object.undecodable": "an object cannot be read",
    "object.withdrawn": "the records of an object are removed",
    "record.crashed": "writing a record crashed",
    "record.delete": "a record was deleted",
    "record.closed": "the gateway responds with 503 to the requests of a route that cannot be written",
    "record.failing": "a gateway cluster repeatedly fails to store a record",
    "record.foreign": "a record was not written: its id belongs to another owner",
    "record.plugins_released": "a record was written without plugins whose unique values another record still has",
    "record.put": "a record was created or updated",
    "record.rejected": "a gateway cluster rejected a record",
    "reflector.failed": "the objects of a kind could not be read",
    "reflector.recovered": "a watch works again",
    "references.limited": "objects in a namespace refer to more objects than are read by name",
    "reflector.synced": "the objects of a kind were listed",
    "reflector.version": "another version of a kind is read",
    "relist.deletes_held_back": "a list is much shorter than expected; its missing objects stay for now",
    "review.crashed": "the check of an object in the webhook crashed",
    "schemas.crashed": "reading the plugin schemas of a gateway cluster crashed",
    "schemas.read": "the plugin schemas of a gateway cluster were read",
    "schemas.unknown": "the plugin schemas of a gateway cluster could not be read",
    "settings.caution": "a setting needs attention",
    "standalone.failed": "a standalone gateway does not respond, or rejects a document",
    "standalone.not_filled": "standalone gateways without records rejected a record of their first document",
    "standalone.not_validated": "a standalone gateway did not validate records",
    "standalone.recovered": "a standalone gateway responds again",
    "standalone.unresolved": "the standalone gateways of a cluster could not be found; the last ones are used",
    "standby.authorized": "a gateway cluster accepts the admin key of this follower",
    "standby.unauthorized": "a gateway cluster rejects the admin key of this follower",
    "status.conflict": "the status of an object was changed meanwhile",
    "status.contested": "another client overwrites the status of an object",
    "status.failed": "the status of an object could not be written",
    "status.rejected": "the API server rejected the status of an object",
    "status.unsupported": "a kind has no status subresource",
    "status.written": "the status of an object was written",
    "target.connected": "the gateways of a GatewayProxy are connected",
    "target.disconnected": "the gateways of a GatewayProxy are no longer used; they keep their records",
    "term.ended": "this replica no longer leads",
    "term.failed": "a term of leadership ended with an error",
    "term.overrun": "work continued after leadership ended",
    "term.started": "this replica leads",
    "world.ready": "every object was read and translated",
    "write.landed_late": "a write without a response took effect late",
}
"""Event → sentence."""

_DETAILS = ("problem", "error", "caution", "reason")
"""Fields with the text of a line, of which a line has one."""

_FIRST = ("timestamp", "level", "event", "message")


def describe(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the message and the parts of the object to a line (a structlog processor)."""
    name = str(event.get("event", ""))
    if sentence := SENTENCES.get(name):
        detail = event.get("message") or next((event[field] for field in _DETAILS if event.get(field)), "")
        event["message"] = f"{sentence}: {detail}" if detail else sentence
    else:
        event.setdefault("message", name)
    _add_object(event)
    return event


def _add_object(event: MutableMapping[str, Any]) -> None:
    """Split `ApisixRoute default/web` into fields to search by."""
    kind, space, place = str(event.get("object", "")).partition(" ")
    if space and not {"kind", "namespace", "name"} & event.keys():
        namespace, slash, name = place.rpartition("/")
        event.update(kind=kind, namespace=namespace if slash else "", name=name)


def ordered(_logger: object, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return a line with its time, level, event and message in front (a structlog processor)."""
    return {**{name: event[name] for name in _FIRST if name in event}, **event}
