"""One Lease as one candidate sees it: its holder, and the requests that acquire, renew and release it.

Each call is one attempt. `elector` and `renewal` decide when to make it and what follows for the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import structlog

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
    KubeUnreachable,
    LeadershipLost,
)
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import bounded

log = structlog.get_logger()

RELEASE_SECONDS = 3.0
_FORBIDDEN, _TEST_FAILED = 403, 422
_RELEASED = 1
"""Duration that a holder writes when it releases a lease, as in client-go. A manually emptied lease has another."""

_MOST_TRANSITIONS = 2**31 - 1
"""Maximum that the API server accepts."""


class LeaseApi(Protocol):
    """The requests that a candidate needs; `api.KubeApi` implements them."""

    async def get(self, path: str, *, timeout: float = ...) -> JsonObject:
        """Return an object."""

    async def create(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Create an object."""

    async def update(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Replace an object if it still has the body's resourceVersion."""

    async def edit(self, path: str, operations: Sequence[JsonObject], *, timeout: float = ...) -> JsonObject:
        """JSON-patch an object; raise KubeConflict with status 422 if a `test` operation fails."""


@dataclass(slots=True)
class _Observed:
    """What a follower knows of the lease: the relevant spec, and since when it has not changed."""

    spec: JsonObject
    since: float


class Lease:
    """The Lease of one election.

    Attributes:
        problem: Why the last attempt failed, as text; empty if it succeeded.
        holder: Identity of the last observed holder.
        overlaps: Whether a renewal may be sent while another one is in flight.
    """

    def __init__(self, api: LeaseApi, options: LeaseOptions, *, clock: Clock) -> None:
        self.problem = ""
        self.holder = ""
        self.overlaps = True
        self._api = api
        self._options = options
        self._clock = clock
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{options.namespace}/leases"
        self._path = f"{self._collection}/{options.name}"
        # As we last wrote it; None if it has to be read again.
        self._held: JsonObject | None = None
        self._observed: _Observed | None = None
        self._seen: JsonObject | None = None
        # Whether a lease in our name may be one that we acquired without receiving the response.
        self._asked = False

    # Acquiring.

    async def look(self) -> JsonObject | None:
        """Return the Lease, or None if it does not exist yet."""
        try:
            lease = await self._get(self._options.renew_deadline)
        except KubeNotFound:
            self._observe(None, "")
            return None
        self._see(lease)
        self.report(None)
        return lease

    def is_free(self) -> bool:
        """Return whether the last observed lease may be acquired.

        A lease that someone deleted, emptied or assigned to us must expire nevertheless: its holder continues until
        its next renewal.
        """
        if self._observed is None:
            return True
        spec = self._observed.spec
        holder = spec.get("holderIdentity") or ""
        if not holder or holder == self._options.identity:
            return True
        duration = spec.get("leaseDurationSeconds")
        waits = max(float(duration) if isinstance(duration, int | float) else 0.0, self._options.lease_duration)
        return self._clock.monotonic() >= self._observed.since + waits

    async def take(self, lease: JsonObject | None) -> None:
        """Acquire the lease that was observed, or create it if None.

        Raises:
            KubeConflict: Another candidate was faster.
        """
        self._asked = True
        taken = self._verified(await (self._create() if lease is None else self._replace(lease)))
        self._held = taken
        self.overlaps = True  # the permission may have been granted since another term
        self.report(None)
        self._see(taken)

    async def _create(self) -> JsonObject:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._options.name, "namespace": self._options.namespace},
            "spec": self._spec({}, acquired=True, transitions=0),
        }
        return await self._api.create(self._collection, lease, timeout=self._options.renew_deadline)

    async def _replace(self, lease: JsonObject) -> JsonObject:
        spec = lease.get("spec") or {}
        changes = spec.get("holderIdentity") != self._options.identity
        transitions = min(int(spec.get("leaseTransitions") or 0) + changes, _MOST_TRANSITIONS)
        wanted = {**lease, "spec": self._spec(spec, acquired=changes, transitions=transitions)}
        return await self._api.update(self._path, wanted, timeout=self._options.renew_deadline)

    def _see(self, lease: JsonObject) -> None:
        """Record the observed lease. Expiry is measured from our own observations only, never from times in it."""
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder and holder not in (self.holder, self._options.identity):
            log.info("leader.observed", lease=self._options.name, leader=holder)
        self.holder = holder
        self._observe(spec, holder)
        self._asked = self._asked and holder in ("", self._options.identity)

    def _observe(self, spec: JsonObject | None, holder: str) -> None:
        """Restart the expiry if something changed, because the holder may have renewed the lease just before."""
        former, changed = self._observed, spec != self._seen
        self._seen = spec
        is_genuine = spec is not None and (former is None or self._is_genuine(spec, holder))
        kept = spec if is_genuine or former is None else former.spec
        if changed and kept is not None:
            self._observed = _Observed(kept, self._clock.monotonic())

    def _is_genuine(self, spec: JsonObject, holder: str) -> bool:
        """Return whether a candidate wrote this, not someone who edited the Lease while its holder may still work."""
        if not holder:
            return bool(spec.get("leaseDurationSeconds") == _RELEASED)
        return holder != self._options.identity or self._asked

    def _spec(self, spec: JsonObject, *, acquired: bool, transitions: int) -> JsonObject:
        now = micro_time(self._clock.now())
        return {
            **spec,
            "holderIdentity": self._options.identity,
            "leaseDurationSeconds": self._duration(),
            "acquireTime": now if acquired else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _duration(self) -> int:
        """Return the duration for the Lease. Followers rely on it, so round up."""
        return math.ceil(self._options.lease_duration)

    # Renewing.

    async def renew(self, seconds: float) -> None:
        """Renew the lease within a number of seconds.

        Raises:
            LeadershipLost: We no longer hold the lease.
            KubeError: The renewal failed, or its result is unknown.
        """
        try:
            await bounded(self._touch(seconds) if self.overlaps else self._put(seconds), seconds, clock=self._clock)
        except TimeoutError:
            raise KubeUnavailable("renewing the lease: no response in time") from None
        except KubeNotFound:
            raise LeadershipLost("the lease was deleted") from None

    async def _touch(self, seconds: float) -> None:
        """Patch the renew time on the condition that we still hold the lease.

        The patch needs no resourceVersion and thus not the response to the previous renewal. With updates,
        `renew_deadline` has to cover the responses to two renewals in sequence.
        """
        operations: list[JsonObject] = [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._options.identity},
            {"op": "add", "path": "/spec/leaseDurationSeconds", "value": self._duration()},
            {"op": "add", "path": "/spec/renewTime", "value": micro_time(self._clock.now())},
        ]
        try:
            self._held = self._verified(await self._api.edit(self._path, operations, timeout=seconds))
        except KubeForbidden as error:
            if error.status != _FORBIDDEN:
                raise
            self._stop_overlapping(error)
            await self._put(seconds)
        except KubeConflict as error:
            if error.status == _TEST_FAILED:
                self._check(await self._get(seconds))
            raise

    def _stop_overlapping(self, error: KubeForbidden) -> None:
        """Continue with updates, because this process lacks the permission to patch."""
        if self.overlaps:
            self.overlaps = False
            where = f"on leases in namespace {self._options.namespace}"
            remedy = f"grant patch {where}; until the next term, the API server must answer within renew_deadline / 2"
            log.warning("lease.patch_forbidden", lease=self._options.name, problem=str(error), remedy=remedy)

    async def _put(self, seconds: float) -> None:
        """Update the lease as we know it with a new time; if we no longer know it, read it first."""
        known = self._held
        lease = known or await self._get(seconds)
        spec = self._check(lease)
        self._held = None  # until the answer confirms the write
        transitions = int(spec.get("leaseTransitions") or 0)
        wanted = {**lease, "spec": self._spec(spec, acquired=False, transitions=transitions)}
        try:
            self._held = self._verified(await self._api.update(self._path, wanted, timeout=seconds))
        except KubeConflict:
            if known is None:
                raise
            await self._put(seconds)  # another client wrote it: read its holder now

    def _check(self, lease: JsonObject) -> JsonObject:
        """Return the spec of a lease that we hold.

        Raises:
            LeadershipLost: We do not hold it.
        """
        spec: JsonObject = lease.get("spec") or {}
        if spec.get("holderIdentity") != self._options.identity:
            raise LeadershipLost(f"the lease is held by {spec.get('holderIdentity') or 'no one'}")
        return spec

    async def _get(self, seconds: float) -> JsonObject:
        """Return the current Lease.

        Raises:
            KubeUnavailable: Among others, the response is not this Lease.
        """
        lease = await self._api.get(self._path, timeout=seconds)
        meta = lease.get("metadata")
        named = isinstance(meta, dict) and meta.get("name") == self._options.name
        if not named or not isinstance(lease.get("spec") or {}, dict):
            raise KubeUnavailable(f"lease {self._options.name}: the response to the read is not this lease")
        return lease

    def _verified(self, answer: JsonObject) -> JsonObject:
        """Return the response to a write if it is our Lease: a proxy may respond with 200 without a write.

        Raises:
            KubeUnavailable: It is not.
        """
        spec = answer.get("spec")
        if not isinstance(spec, dict) or spec.get("holderIdentity") != self._options.identity:
            raise KubeUnavailable(f"lease {self._options.name}: the response to the write is not what was written")
        return answer

    # Releasing.

    async def free(self) -> bool:
        """Release the lease; return False if someone else holds it."""
        try:
            return await self._free()
        except KubeConflict:  # with another write of ours that was in flight
            self._held = None
            return await self._free()
        finally:
            self._held = None

    async def _free(self) -> bool:
        return await (self._clear() if self.overlaps else self._put_free())

    async def _clear(self) -> bool:
        """Remove our identity if it is there, whatever the resourceVersion.

        So a renewal that we stopped waiting for is harmless: before this request it changes only the time, after it its
        `test` fails.
        """
        operations: list[JsonObject] = [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._options.identity},
            *({"op": "add", "path": f"/spec/{name}", "value": value} for name, value in self._released().items()),
        ]
        try:
            await self._api.edit(self._path, operations, timeout=RELEASE_SECONDS)
        except KubeForbidden as error:
            if error.status != _FORBIDDEN:
                raise
            self.overlaps = False
            return await self._put_free()
        except KubeConflict as error:
            if error.status != _TEST_FAILED:
                raise
            return False
        return True

    async def _put_free(self) -> bool:
        lease = self._held or await self._get(RELEASE_SECONDS)
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") != self._options.identity:
            return False
        await self._api.update(self._path, {**lease, "spec": {**spec, **self._released()}}, timeout=RELEASE_SECONDS)
        return True

    def _released(self) -> JsonObject:
        """Return the fields of a lease without a holder."""
        return {"holderIdentity": "", "leaseDurationSeconds": _RELEASED, "renewTime": micro_time(self._clock.now())}

    # Failures.

    def report(self, error: KubeError | None) -> None:
        """Record the result of an attempt, and log a problem that is new."""
        problem = "" if error is None else str(error)
        if isinstance(error, KubeForbidden):
            where = f"namespace {self._options.namespace}"
            problem = f"leader election is forbidden: grant get, create, update, patch on leases in {where} ({error})"
        if problem and problem != self.problem:
            line = log.debug if isinstance(error, KubeUnreachable) else log.warning
            line("lease.unavailable", lease=self._options.name, problem=problem)
        self.problem = problem


def micro_time(moment: datetime) -> str:
    """Return a Kubernetes MicroTime: RFC 3339 in UTC with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
