"""One Lease at the API server, as one candidate sees it: who has it, and the requests that take, renew and free it.

Each call is one try. When to make it, and what follows for the work, is decided in `elector` and `renewal`.
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
"""The duration of a lease that its holder gave back, as client-go writes it; one that people emptied has another."""

_MOST_TRANSITIONS = 2**31 - 1
"""The API server takes no larger number."""


class LeaseApi(Protocol):
    """What a candidate needs of the API server; `api.KubeApi` has it."""

    async def get(self, path: str, *, timeout: float = ...) -> JsonObject:
        """Return an object."""

    async def create(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Create an object."""

    async def update(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Replace an object if it is still the version that the body names."""

    async def edit(self, path: str, operations: Sequence[JsonObject], *, timeout: float = ...) -> JsonObject:
        """JSON-patch an object; KubeConflict of status 422 if one of the tests in it fails."""


@dataclass(slots=True)
class _Observed:
    """What a follower knows of the lease: the spec that counts for it, and since when no change was seen."""

    spec: JsonObject
    since: float


class Lease:
    """The Lease of one election.

    Attributes:
        problem: Why the last try failed, for people; empty: it did not.
        holder: Identity of the holder that was seen last.
        overlaps: Whether a renewal may be sent while another one is under way.
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
        # As we wrote it last; None: the next who needs it has to look.
        self._held: JsonObject | None = None
        self._observed: _Observed | None = None
        self._seen: JsonObject | None = None
        # Whether a lease in our name may be one that we took, with the answer lost.
        self._asked = False

    # Taking.

    async def look(self) -> JsonObject | None:
        """Return the Lease, None if there is none yet."""
        try:
            lease = await self._get(self._options.renew_deadline)
        except KubeNotFound:
            self._observe(None, "")
            return None
        self._see(lease)
        self.complain(None)
        return lease

    def is_free(self) -> bool:
        """Whether the lease that was seen last may be taken.

        One that was deleted, emptied or given to us by somebody has to run out all the same: whoever held it goes on
        until the next renewal.
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
        """Take the lease as it was seen, None: create it.

        Raises:
            KubeConflict: Somebody was faster.
        """
        self._asked = True
        taken = self._ours(await (self._create() if lease is None else self._replace(lease)))
        self._held = taken
        self.overlaps = True  # what was forbidden in another term may be granted again
        self.complain(None)
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
        """Remember since when the lease looks as it does; only what we watched ourselves counts."""
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder and holder not in (self.holder, self._options.identity):
            log.info("term.awaited", lease=self._options.name, leader=holder)
        self.holder = holder
        self._observe(spec, holder)
        self._asked = self._asked and holder in ("", self._options.identity)

    def _observe(self, spec: JsonObject | None, holder: str) -> None:
        """Count from now if something changed: whoever held the lease may have renewed it until a moment ago."""
        former, changed = self._observed, spec != self._seen
        self._seen = spec
        counts = spec is not None and (former is None or self._counts(spec, holder))
        kept = spec if counts or former is None else former.spec
        if changed and kept is not None:
            self._observed = _Observed(kept, self._clock.monotonic())

    def _counts(self, spec: JsonObject, holder: str) -> bool:
        """Whether a holder wrote that, and not somebody who edits the Lease of one that may still work."""
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
        """Return what the Lease says of its duration: followers believe it, so it is never less than we count on."""
        return math.ceil(self._options.lease_duration)

    # Keeping.

    async def renew(self, seconds: float) -> None:
        """Say that we are still there, in so many seconds at most.

        Raises:
            LeadershipLost: It is not ours any more.
            KubeError: It failed, or nobody knows.
        """
        try:
            await bounded(self._touch(seconds) if self.overlaps else self._put(seconds), seconds, clock=self._clock)
        except TimeoutError:
            raise KubeUnavailable("renewing the lease: no answer in time") from None
        except KubeNotFound:
            raise LeadershipLost("the lease was deleted") from None

    async def _touch(self, seconds: float) -> None:
        """Change its time, on condition that it is still ours.

        That asks for no version, and so for no answer to the renewal before. An update of what the last answer showed
        takes two answers a renewal, one after the other, both within renew_deadline.
        """
        operations: list[JsonObject] = [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._options.identity},
            {"op": "add", "path": "/spec/leaseDurationSeconds", "value": self._duration()},
            {"op": "add", "path": "/spec/renewTime", "value": micro_time(self._clock.now())},
        ]
        try:
            self._held = self._ours(await self._api.edit(self._path, operations, timeout=seconds))
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
        """Take note that this process may not patch: it goes on with what else it may do."""
        if self.overlaps:
            self.overlaps = False
            where = f"on leases in namespace {self._options.namespace}"
            remedy = f"grant patch {where}; until the next term answers are needed in half of renew_deadline"
            log.warning("renewal.restricted", lease=self._options.name, problem=str(error), remedy=remedy)

    async def _put(self, seconds: float) -> None:
        """Put the lease as we know it with a new time; if we do not know it any more, look who has it now."""
        known = self._held
        lease = known or await self._get(seconds)
        spec = self._check(lease)
        self._held = None  # until the answer says that the write came through
        transitions = int(spec.get("leaseTransitions") or 0)
        wanted = {**lease, "spec": self._spec(spec, acquired=False, transitions=transitions)}
        try:
            self._held = self._ours(await self._api.update(self._path, wanted, timeout=seconds))
        except KubeConflict:
            if known is None:
                raise
            await self._put(seconds)  # somebody wrote it: look at once who has it

    def _check(self, lease: JsonObject) -> JsonObject:
        """Return the spec of a lease if it is ours."""
        spec: JsonObject = lease.get("spec") or {}
        if spec.get("holderIdentity") != self._options.identity:
            raise LeadershipLost(f"{spec.get('holderIdentity') or 'nobody'} holds the lease")
        return spec

    async def _get(self, seconds: float) -> JsonObject:
        """Return the Lease as it is.

        Raises:
            KubeUnavailable: Among others, when the answer is another thing.
        """
        lease = await self._api.get(self._path, timeout=seconds)
        meta = lease.get("metadata")
        named = isinstance(meta, dict) and meta.get("name") == self._options.name
        if not named or not isinstance(lease.get("spec") or {}, dict):
            raise KubeUnavailable(f"the lease {self._options.name} was asked for: the answer is something else")
        return lease

    def _ours(self, answer: JsonObject) -> JsonObject:
        """Return the answer to a write if it is our Lease: who says 200 to anything has not renewed it.

        Raises:
            KubeUnavailable: It is not.
        """
        spec = answer.get("spec")
        if not isinstance(spec, dict) or spec.get("holderIdentity") != self._options.identity:
            raise KubeUnavailable(f"the lease {self._options.name} was written: the answer is not what was written")
        return answer

    # Giving it up.

    async def free(self) -> bool:
        """Take our name out of the lease; False if it is somebody else's."""
        try:
            return await self._free()
        except KubeConflict:  # with another write that was under way
            self._held = None
            return await self._free()
        finally:
            self._held = None

    async def _free(self) -> bool:
        return await (self._clear() if self.overlaps else self._put_free())

    async def _clear(self) -> bool:
        """Take our name out on condition that it is there, whatever the version.

        So a renewal that was given up does no harm: before this one it changes the time, after it it finds no holder.
        """
        operations: list[JsonObject] = [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._options.identity},
            *({"op": "add", "path": f"/spec/{name}", "value": value} for name, value in self._nobody().items()),
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
        await self._api.update(self._path, {**lease, "spec": {**spec, **self._nobody()}}, timeout=RELEASE_SECONDS)
        return True

    def _nobody(self) -> JsonObject:
        """Return the fields of a lease that nobody holds."""
        return {"holderIdentity": "", "leaseDurationSeconds": _RELEASED, "renewTime": micro_time(self._clock.now())}

    # What went wrong.

    def complain(self, error: KubeError | None) -> None:
        """Note how a try went, and log what is new about it."""
        problem = "" if error is None else str(error)
        if isinstance(error, KubeForbidden):
            where = f"namespace {self._options.namespace}"
            problem = f"electing a leader is forbidden: grant get, create, update, patch on leases in {where} ({error})"
        if problem and problem != self.problem:
            line = log.debug if isinstance(error, KubeUnreachable) else log.warning
            line("lease.unavailable", lease=self._options.name, problem=problem)
        self.problem = problem


def micro_time(moment: datetime) -> str:
    """Return a MicroTime: RFC 3339 in UTC with six digits of the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
