"""Defects of leases, terms and the writes of a leader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from apisix_ingress.errors import KubeUnavailable
from apisix_ingress.gateway.adminapi import transport
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.election.lease import Lease
from apisix_ingress.kube.election.renewal import Renewal
from apisix_ingress.runtime.term import Term
from tests.simulation.defects.planting import defect, instead


@defect("the lease is not checked before a write")
def _() -> Any:
    return instead(Term, "check", lambda self, seconds=0.0: None)


@defect("a write starts with less of the lease left than it takes")
def _() -> Any:
    check = Term.check
    return instead(Term, "check", lambda self, seconds=0.0: check(self))


@defect("a frozen request is sent late")
def _() -> Any:
    return instead(transport, "check_deadline", lambda deadline: None)


@defect("lease expiry uses the wall clock")
def _() -> Any:
    def is_free(self: Any) -> bool:
        spec = self._observed.spec if self._observed else {}
        ends = spec.get("renewTime", "")
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        return not spec.get("holderIdentity") or bool(ends[:16] < now[:16])

    return instead(Lease, "is_free", is_free)


@defect("a failed renewal is treated as successful")
def _() -> Any:
    renew = Lease.renew

    async def careless(self: Any, seconds: float) -> None:
        with suppress(KubeUnavailable):
            await renew(self, seconds)

    return instead(Lease, "renew", careless)


@defect("a renewal is dated from its answer")
def _() -> Any:
    settle = Renewal._settle
    return instead(Renewal, "_settle", lambda self, done, sent: settle(self, done, self._clock.monotonic()))


@defect("a renewal does not check the holder")
def _() -> Any:
    edit = KubeApi.edit

    async def rude(self: Any, path: str, operations: Any, **named: Any) -> Any:
        own = {"op": "add", "path": operations[0]["path"], "value": operations[0]["value"]}
        return await edit(self, path, [own, *operations[1:]], **named)

    return instead(KubeApi, "edit", rude)


@defect("a stop releases the lease before unacknowledged writes time out")
def _() -> Any:
    @contextmanager
    def planted() -> Iterator[None]:
        async def hasty(self: Any, seconds: float) -> bool:
            return True

        with instead(ClusterSync, "close", hasty), instead(Term, "note_unacked", lambda self, until: None):
            yield

    return planted()


@defect("an abandoned write is treated as finished")
def _() -> Any:
    return instead(Term, "note_unacked", lambda self, until: None)
