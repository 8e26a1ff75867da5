"""The leader according to the Lease: its holder, and the time since the last renewal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from apisix_ingress.errors import KubeError, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.json import JsonObject
from apisix_ingress.settings import KubernetesSettings

LEASES = "/apis/coordination.k8s.io/v1"

LeaseState = Literal["held", "stale", "free", "absent", "unreadable", "off"]


@dataclass(frozen=True, slots=True)
class SeenLease:
    """The state of a Lease.

    Attributes:
        state: held: there is a leader; stale: its holder stopped renewing; free: released; absent: it does not exist;
            unreadable: see `problem`; off: leader election is disabled.
        age: Seconds since the last renewal, by this machine's clock.
    """

    name: str
    namespace: str
    state: LeaseState
    holder: str = ""
    age: float | None = None
    problem: str = ""


def own_namespace(settings: KubernetesSettings, api: KubeApi) -> str:
    """Return the namespace of the Lease and the ledger, as the controller determines it."""
    return settings.election.namespace or os.environ.get("POD_NAMESPACE") or api.namespace


async def see_lease(api: KubeApi, settings: KubernetesSettings, now: datetime) -> SeenLease:
    """Read the configured Lease."""
    name, namespace = settings.election.name, own_namespace(settings, api)
    if not settings.election.enabled:
        return SeenLease(name, namespace, "off")
    try:
        raw = await api.get(f"{LEASES}/namespaces/{namespace}/leases/{name}")
    except KubeNotFound:
        return SeenLease(name, namespace, "absent")
    except KubeError as error:
        return SeenLease(name, namespace, "unreadable", problem=str(error))
    return lease_of(raw, now)


def lease_of(raw: JsonObject, now: datetime) -> SeenLease:
    """Return the state of a Lease."""
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "")
    holder, age = str(spec.get("holderIdentity") or ""), _age(spec.get("renewTime"), now)
    if not holder:
        return SeenLease(name, namespace, "free", age=age)
    duration = spec.get("leaseDurationSeconds")
    is_held = age is not None and age <= (duration if isinstance(duration, int | float) else 0)
    return SeenLease(name, namespace, "held" if is_held else "stale", holder, age)


def _age(renewed: object, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(str(renewed))
    except ValueError:
        return None
    return (now - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds()
