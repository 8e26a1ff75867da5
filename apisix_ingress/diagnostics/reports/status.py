"""The document of `status`: clusters, kinds, objects with their states, and the leader. `status_table` renders it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from apisix_ingress import __version__
from apisix_ingress.diagnostics.collect.cluster_state import ClusterState
from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway
from apisix_ingress.diagnostics.collect.leader import SeenLease
from apisix_ingress.diagnostics.empty_state import NO_HINT, Hint, empty_state
from apisix_ingress.diagnostics.shortfalls import EXPIRED, NO_ENDPOINTS, Shortfalls
from apisix_ingress.kube.status.condition_list import of_type
from apisix_ingress.kube.status.event_times import Failure
from apisix_ingress.model.condition import CONDITION_TYPE, Condition, is_away
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import has_condition
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.states import OBJECT_STATUSES, ObjectStatus
from providers.status.conditions import AWAY_REASON, REJECTED_REASON

NO_TIMES: Mapping[Failure, datetime] = MappingProxyType({})

NO_MATCH = Hint("No served object has this namespace and kind; omit --namespace and --kind to see all of them.")


@dataclass(frozen=True, slots=True)
class Wellness:
    """The state of an object: ok, failed, waiting (for a gateway that does not respond) or pending.

    Attributes:
        reason: A word such as ServiceNotFound; with several problems, that of the first.
        since: When the condition became what it is, as RFC 3339; empty if it is not known.
    """

    state: ObjectStatus
    reason: str = ""
    message: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects a status is about.

    Attributes:
        namespace: Only this one; empty: all.
        kinds: Only these; empty: all.
        healthy: Whether objects without a problem are listed too.
    """

    namespace: str = ""
    kinds: frozenset[str] = frozenset()
    healthy: bool = False

    @property
    def is_set(self) -> bool:
        """Whether any object may be left out."""
        return bool(self.namespace or self.kinds)

    def takes(self, key: ObjectKey) -> bool:
        """Return whether the status is about an object."""
        return self.namespace in ("", key.namespace) and (not self.kinds or key.kind in self.kinds)


def status_document(
    look: ClusterState, only: Filter = Filter(), announced: Mapping[Failure, datetime] = NO_TIMES
) -> JsonObject:
    """Return the whole status; `announced` is since when Ingresses fail according to Events."""
    items = (item for item in look.inventory.ours() if only.takes(item.meta.key))
    unread = look.inventory.unread
    short = Shortfalls(look.inventory.world)
    states = {item.meta.key: short_of(short, item.meta.key, wellness(item, look)) for item in items}
    return compose(
        {key: _timed(look, short, key, found, announced) for key, found in states.items()},
        [_cluster(gateway, look.at) for gateway in look.gateways],
        only,
        controller=look.settings.kubernetes.controller_name,
        leader=_leader(look.lease),
        is_led=is_led(look.lease),
        unread=[{"kind": kind, "reason": reason} for kind, reason in sorted(unread.items())],
        hint=NO_HINT if unread else empty_state(look.inventory.world, look.inventory.options),
    )


def compose(
    states: Mapping[ObjectKey, Wellness],
    clusters: Sequence[JsonObject],
    only: Filter,
    *,
    controller: str,
    leader: JsonObject,
    is_led: bool,
    unread: Sequence[JsonObject] = (),
    hint: Hint = NO_HINT,
) -> JsonObject:
    """Return the document of a status: the same for a command and for a running controller."""
    tally = Counter((key.kind, found.state) for key, found in states.items())
    kinds = sorted({kind for kind, _ in tally})
    failing = any(found.state != "ok" for found in states.values())
    return {
        "healthy": not (failing or unread) and is_led and all(each["in_sync"] for each in clusters),
        "version": __version__,
        "controller": controller,
        "leader": leader,
        "clusters": list(clusters),
        "objects": {kind: {state: tally[kind, state] for state in OBJECT_STATUSES} for kind in kinds},
        "items": [
            {
                "object": key.reference(),
                "state": found.state,
                "reason": found.reason,
                "message": found.message,
                "since": found.since,
            }
            for key, found in states.items()
            if only.healthy or found.state != "ok"
        ],
        "unread": list(unread),
        "hint": (NO_MATCH if only.is_set and not states and not hint.text else hint).document(),
    }


def wellness(item: CustomObject, look: ClusterState) -> Wellness:
    """Return the state of an object: from its condition, or from the gateways for kinds and settings without one."""
    computed = computed_wellness(look.condition(item.meta.key))
    if not (has_condition(item.meta.kind) and look.settings.kubernetes.status.enabled):
        return computed
    return with_reason(stored_wellness(item), computed)


def with_reason(stored: Wellness, computed: Wellness) -> Wellness:
    """Return the stored state with the reason of a failure; the condition has the same one for all, as in 1.8.

    Args:
        stored: From the condition.
        computed: From the objects; a failure that it does not have is the rejection of a gateway.
    """
    match stored.state:
        case "waiting":
            return replace(stored, reason=AWAY_REASON)
        case "failed":
            return replace(stored, reason=computed.reason if computed.state == stored.state else REJECTED_REASON)
        case _:
            return stored


def short_of(short: Shortfalls, key: ObjectKey, found: Wellness) -> Wellness:
    """Return the state of an object, failed if its requests fail although every gateway has its records."""
    problem = short.of(key) if found.state in ("ok", "waiting") else None
    if problem is None:
        return found
    ended = short.expired_at(key) if problem.code == EXPIRED else None
    return Wellness("failed", problem.code, problem.message, f"{ended:%Y-%m-%dT%H:%M:%SZ}" if ended else "")


def _timed(
    look: ClusterState, short: Shortfalls, key: ObjectKey, found: Wellness, announced: Mapping[Failure, datetime]
) -> Wellness:
    """Return the state of an object with its time; gateways know since when an upstream has no nodes."""
    if found.state == "ok" or found.since:
        return found
    since = announced.get((key, found.reason))
    if found.reason == NO_ENDPOINTS:
        listed = (each.listing.owned for each in look.gateways if each.listing is not None)
        idle = [*short.idle_upstreams(key)]
        written = (there[each].updated for there in listed for each in idle if each in there and there[each].updated)
        since = datetime.fromtimestamp(first, UTC) if (first := min(written, default=0)) else None
    return replace(found, since=f"{since:%Y-%m-%dT%H:%M:%SZ}" if since is not None else "")


def stored_wellness(item: CustomObject) -> Wellness:
    """Return the state of a custom resource from its condition, which must be for its current generation."""
    found = of_type(item.status, CONDITION_TYPE)
    if found is None or found.get("observedGeneration") != item.meta.generation:
        return Wellness("pending", "Pending", f"no condition for generation {item.meta.generation} yet")
    since = str(found.get("lastTransitionTime") or "")
    return replace(_wellness(*(str(found.get(name) or "") for name in ("status", "reason", "message"))), since=since)


def computed_wellness(condition: Condition | None) -> Wellness:
    """Return the state of an object from the condition that it would have."""
    if condition is None:
        return Wellness("pending", "Pending", "its records are not in every gateway yet")
    causes = condition.causes
    return _wellness(condition.status, causes[0].reason if causes else condition.reason, condition.message)


def _wellness(status: str, reason: str, message: str) -> Wellness:
    state: ObjectStatus = "ok" if status == "True" else "waiting" if is_away(message) else "failed"
    return Wellness(state, reason, message)


def is_led(lease: SeenLease) -> bool:
    """Return whether there is a leader, or none is needed; an unreadable Lease is not a failure."""
    return lease.state in ("held", "off", "unreadable")


def _cluster(gateway: SeenGateway, at: datetime) -> JsonObject:
    counts = gateway.counts()
    return {
        "name": gateway.name,
        "url": gateway.url,
        "reachable": gateway.taken_over,
        "in_sync": gateway.taken_over and counts.is_settled,
        "trouble": gateway.trouble,
        "since": "",
        "version": gateway.version,
        "checked": f"{at:%Y-%m-%dT%H:%M:%SZ}" if gateway.taken_over else "",
        "records": asdict(counts) if gateway.taken_over else None,
    }


def _leader(lease: SeenLease) -> JsonObject:
    return {
        "lease": f"{lease.namespace}/{lease.name}",
        "state": lease.state,
        "holder": lease.holder,
        "renewed_seconds_ago": None if lease.age is None else round(lease.age, 1),
        "problem": lease.problem,
    }
