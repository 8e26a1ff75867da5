"""The leader according to the Lease: its holder, its Pod, and the time since the last renewal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from apisix_ingress.errors import IngressError, KubeError, KubeForbidden, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.formats.patterns import ValuePattern
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


@dataclass(frozen=True, slots=True)
class LeaderPod:
    """The Pod of the leader."""

    namespace: str
    name: str


async def find_leader(api: KubeApi, settings: KubernetesSettings, now: datetime) -> LeaderPod:
    """Return the Pod of the leader; unless the namespace of the Lease is configured, it is the controller's.

    Raises:
        IngressError: There is no leader, it is not a Pod, or it cannot be read.
    """
    if settings.election.enabled and not (settings.election.namespace or os.environ.get("POD_NAMESPACE")):
        election = settings.election.model_copy(update={"namespace": await _namespace_of_controller(api)})
        settings = settings.model_copy(update={"election": election})
    lease = await see_lease(api, settings, now)
    where = f"Lease {lease.namespace}/{lease.name}"
    match lease.state:
        case "held":
            pod = lease.holder.rpartition("_")[0]
            if _POD.fits(pod):
                return LeaderPod(lease.namespace, pod)
            raise IngressError(f"{where}: its holder {lease.holder!r} is not a Pod: {_FORWARD}")
        case "off":
            raise IngressError(f"leader election is disabled: {_FORWARD}")
        case "absent":
            raise IngressError(f"{where} does not exist: {_SET} to the namespace of the controller")
        case "unreadable":
            raise IngressError(f"{where}: {lease.problem}; {_FORWARD}")
    raise IngressError(f"{where}: no replica leads, so nothing is written to the gateways: check the controller's Pods")


_POD = ValuePattern(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", 253)
"""The name of a Pod; the holder of a Lease is a Pod's name and a random suffix."""

_FORWARD = "forward the port of the controller with `kubectl port-forward`, and use --url"


async def _namespace_of_controller(api: KubeApi) -> str:
    """Return the namespace that ClusterRoleBindings name, which tenants cannot write: they can write a Lease.

    Raises:
        IngressError: No binding or several ones are labeled as this controller's, or they cannot be read.
    """
    try:
        page = await api.page(_BINDINGS, limit=_MOST_BINDINGS, labels=_OWN)
    except KubeForbidden:
        raise IngressError(f"the namespace of the controller is unknown, for lack of permissions: {_SET}") from None
    subjects = (subject for raw in page.items for subject in raw.get("subjects") or ())
    found = sorted({str(each.get("namespace") or "") for each in subjects} - {""})
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise IngressError(f"ClusterRoleBindings with the label {_OWN} must name one namespace, not {names}: {_SET}")
    return found[0]


_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_OWN = "app.kubernetes.io/name=apisix-ingress"
_SET = "set --controller-namespace"
_MOST_BINDINGS = 20
"""ClusterRoleBindings that are read; those of a second namespace are an error anyway."""


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
