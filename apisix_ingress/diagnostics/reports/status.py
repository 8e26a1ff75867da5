"""The document of `status`: clusters, kinds, failing objects, and the leader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from apisix_ingress import __version__
from apisix_ingress.diagnostics.collect.cluster_state import ClusterState
from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.leader import SeenLease
from apisix_ingress.kube.status.condition_list import of_type
from apisix_ingress.model.condition import CONDITION_TYPE, Condition, is_away
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.table import has_condition
from apisix_ingress.model.objects import CustomObject

STATES = ("ok", "failed", "waiting", "pending")


@dataclass(frozen=True, slots=True)
class Wellness:
    """The state of an object: ok, failed, waiting (for a gateway that does not answer) or pending."""

    state: str
    reason: str = ""
    message: str = ""


def status_document(look: ClusterState) -> JsonObject:
    """Return everything at a glance."""
    states = {str(item.meta.key): (item, wellness(item, look)) for item in look.inventory.ours()}
    tally = Counter((item.meta.kind, found.state) for item, found in states.values())
    kinds = sorted({kind for kind, _ in tally})
    clusters = [_cluster(gateway) for gateway in look.gateways]
    unwell = [_unwell(name, found) for name, (_, found) in states.items() if found.state != "ok"]
    unread = look.inventory.unread
    return {
        "healthy": not (unwell or unread) and is_led(look.lease) and all(each["in_sync"] for each in clusters),
        "version": __version__,
        "controller": look.settings.kubernetes.controller_name,
        "leader": _leader(look.lease),
        "clusters": clusters,
        "objects": {kind: {state: tally[kind, state] for state in STATES} for kind in kinds},
        "not_ok": unwell,
        "unread": [{"kind": kind, "reason": reason} for kind, reason in sorted(unread.items())],
    }


def wellness(item: CustomObject, look: ClusterState) -> Wellness:
    """Return the state of an object: from its condition, or from the gateways for kinds and settings without one."""
    if has_condition(item.meta.kind) and look.settings.kubernetes.status.enabled:
        return stored_wellness(item)
    return computed_wellness(look.condition(item.meta.key))


def stored_wellness(item: CustomObject) -> Wellness:
    """Return the state of a custom resource from its condition, which must be for its present generation."""
    found = of_type(item.status, CONDITION_TYPE)
    if found is None or found.get("observedGeneration") != item.meta.generation:
        return Wellness("pending", "Pending", f"no condition for generation {item.meta.generation} yet")
    return _wellness(*(str(found.get(name) or "") for name in ("status", "reason", "message")))


def computed_wellness(condition: Condition | None) -> Wellness:
    """Return the state of an object from the condition that it would have."""
    if condition is None:
        return Wellness("pending", "Pending", "its records are not in every gateway yet")
    return _wellness(condition.status, condition.reason, condition.message)


def _wellness(status: str, reason: str, message: str) -> Wellness:
    state = "ok" if status == "True" else "waiting" if is_away(message) else "failed"
    return Wellness(state, reason, message)


def is_led(lease: SeenLease) -> bool:
    """Say whether there is a leader, or none is needed; an unreadable Lease is not a failure."""
    return lease.state in ("held", "off", "unreadable")


def status_lines(document: JsonObject) -> Iterator[str]:
    """Yield the document as text."""
    yield f"controller {document['controller']}: {_led_by(document['leader'])}"
    for cluster in document["clusters"]:
        yield _cluster_line(cluster)
    for kind, tally in document["objects"].items():
        yield f"{kind}: " + ", ".join(f"{tally[state]} {state}" for state in STATES if tally[state] or state == "ok")
    for each in document["unread"]:
        yield f"cannot read {each['kind']}: {each['reason']}"
    for each in document["not_ok"]:
        yield f"{each['state']}: {each['object']}: {each['reason']}: {each['message']}"
    yield "healthy" if document["healthy"] else "degraded"


def _cluster(gateway: SeenGateway) -> JsonObject:
    counts = gateway.counts()
    return {
        "name": gateway.name,
        "url": gateway.url,
        "reachable": gateway.taken_over,
        "in_sync": gateway.taken_over and counts.is_settled,
        "trouble": gateway.trouble,
        "version": gateway.version,
        "records": asdict(counts) if gateway.taken_over else None,
    }


def _cluster_line(cluster: JsonObject) -> str:
    begin = f"cluster {cluster['name']} at {cluster['url']}"
    if not cluster["reachable"]:
        return f"{begin}: can't be read: {cluster['trouble']}"
    counts = dict(cluster["records"])
    wanted = counts.pop("wanted")
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if count and name != "there")
    version = f" ({cluster['version']})" if cluster["version"] else ""
    return f"{begin}{version}: {counts['there']} of {wanted} records in sync{f'; {others}' if others else ''}"


def _unwell(name: str, found: Wellness) -> JsonObject:
    return {"object": name, "state": found.state, "reason": found.reason, "message": found.message}


def _leader(lease: SeenLease) -> JsonObject:
    return {
        "lease": f"{lease.namespace}/{lease.name}",
        "state": lease.state,
        "holder": lease.holder,
        "renewed_seconds_ago": None if lease.age is None else round(lease.age, 1),
        "problem": lease.problem,
    }


def _led_by(leader: JsonObject) -> str:
    where = f"(lease {leader['lease']})"
    age = leader["renewed_seconds_ago"]
    match leader["state"]:
        case "held":
            return f"{leader['holder']} leads, renewed {age:g} s ago {where}"
        case "stale":
            since = f"for {age:g} s" if age is not None else "at any known time"
            return f"no leader: {leader['holder']} has not renewed {since} {where}"
        case "free":
            return f"no leader: the last one released the lease {where}"
        case "absent":
            return f"there has never been a leader {where}; set --namespace to the namespace of the controller"
        case "off":
            return "leader election is disabled"
    return f"the leader is unknown {where}: {leader['problem']}"
