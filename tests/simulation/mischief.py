"""The faults of a story: of the API server, gateways, networks, processes and clocks.

Methods start faults; they end automatically later. The time and kind of faults are random.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from tests.simulation.checking.oracle import is_ours
from tests.simulation.checking.trace import Trace
from tests.simulation.loop import Process, running_loop
from tests.simulation.replica import Replica
from tests.simulation.servers.apiserver import ApiFaults, SimApiServer
from tests.simulation.servers.gateway import READS, AdminFaults, Body, Key, SimGateway

LATER = "later"
STOP_SECONDS = 30.0
"""Seconds after SIGTERM until a process is killed: the default of Kubernetes."""
IN_TIME, TOO_LATE = 4.4, 9.0
"""Seconds after which a late gateway applies a write: before or after the client has given up."""


class Mischief:
    """Faults, drawn from `rng`.

    Args:
        rng: Draws the faults.
        trace: Records them.
        server: The API server.
        gateways: All clusters.
        waver: Lets users create something, and delete it again after some seconds.
        foreign: Records that survive a wipe: their owners restore them.
        drift: Whether records may be changed manually; only an audit notices that.
    """

    def __init__(
        self,
        rng: random.Random,
        trace: Trace,
        server: SimApiServer,
        gateways: list[SimGateway],
        *,
        waver: Callable[[float], None],
        foreign: dict[Key, Body],
        drift: bool,
    ) -> None:
        self.replicas: list[Replica] = []
        self.alone_until = 0.0
        """Until this time, a fault needs active users, and no other fault may start."""
        self._waver = waver
        self._rng = rng
        self._trace = trace
        self._server = server
        self._gateways = gateways
        self._foreign = foreign
        self._drift = drift
        self._backups: list[tuple[SimGateway, dict[str, dict[str, Body]]]] = []
        self._background: list[asyncio.Task[None]] = []
        self._trap: tuple[str, int, str] | None = None

    def act(self) -> None:
        """Start a random fault."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (3, self._fail_api),
            (4, self._disturb_watches),
            (3, self._cut_link),
            (2, self._shun),
            (2, self._hold),
            (7, self._fail_gateway),
            (3, self._close_gateway),
            (3 if self._drift else 8, self._deafen),
            (1 if self._drift else 3, self._dawdle),
            (3, self._kill),
            (3, self._freeze),
            (8, self._set_trap),
            (1, self._jump),
            (5, self._restart),
            *([(4, self._meddle), (2, self._restore)] if self._drift else []),
        ]
        self._rng.choices([each for _, each in actions], [weight for weight, _ in actions])[0]()

    async def end(self) -> None:
        """End every fault, and start stopped processes; frozen ones continue when they are due."""
        self._trap = None
        self._mend_api()
        self._server.shunned.clear()
        self._server.held.clear()
        for gateway in self._gateways:
            self._mend(gateway)
        for task in self._background:
            if task.get_name() == LATER:
                task.cancel()
        await asyncio.gather(*(task for task in self._background if task.get_name() != LATER))
        for replica in self.replicas:
            replica.start()
            if replica.process is not None:
                self._server.set_link(replica.process, "up")

    def later(self, seconds: float, what: Callable[[], object]) -> None:
        """Call something later, unless the faults end before."""

        async def wait() -> None:
            await asyncio.sleep(seconds)
            what()

        self._spawn(wait(), name=LATER)

    def spring(self, process: Process, point: str, gateway: SimGateway, method: str) -> bool:
        """Handle the progress of a request; return True if something happened to its process."""
        if self._trap is None or method in READS or self._trap[0] != point or process.is_gone:
            return False
        _, left, what = self._trap
        self._trap = (point, left - 1, what)
        if left > 0:
            return False
        self._trap = None
        replica = next(replica for replica in self.replicas if replica.process is process)
        seconds = self._rng.choice([1.0, 4.9, 13.0, 20.0, 20.0, 40.0])
        self._trace.note("fault", f"trap: {what} of {process.name} at {point} of a {method}")
        if what == "freeze":
            self._freeze_one(replica, seconds)
        elif what == "linger":
            self._linger(replica, gateway)
        else:
            process.is_gone = True
            self._spawn(self._kill_and_start(replica, seconds))
        return True

    # The API server.

    def _fail_api(self) -> None:
        rng = self._rng
        self._server.fault = ApiFaults(
            error=rng.choice([0, 0.2, 0.5]),
            throttled=rng.choice([0, 0.3]),
            conflict=rng.choice([0, 0.4]),
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.2]),
            slow=rng.choice([0, 0.3]),
            lost_bookmark=rng.choice([0, 0.5]),
        )
        self._trace.note("fault", str(self._server.fault))
        self.later(rng.choice([1.0, 10.0, 40.0]), self._mend_api)

    def _mend_api(self) -> None:
        self._server.fault = ApiFaults()

    def _disturb_watches(self) -> None:
        what = self._rng.choice(["cut", "end", "stall", "gone", "bookmark", "half", "garbage"])
        if self._rng.random() < 0.4:
            self._trace.note("fault", "the API server forgets its history")
            self._server.compact()
        self._trace.note("fault", f"watches: {what}")
        self._server.disturb(what, self._rng.choice([0.3, 1.0]))

    def _cut_link(self) -> None:
        replica = self._anyone()
        if replica.process is None:
            return
        process, is_refused = replica.process, self._rng.random() < 0.5
        self._trace.note("fault", f"{process.name} is cut off from the API server")
        self._server.set_link(process, "refused" if is_refused else "dropped")
        self.later(self._rng.choice([1.0, 8.0, 30.0]), lambda: self._join(process, forgets=self._rng.random() < 0.5))

    def _join(self, process: Process, *, forgets: bool) -> None:
        """Let a replica reach the API server again, whose history may have been compacted."""
        if forgets:
            self._server.compact()
        self._server.set_link(process, "up")

    def _shun(self) -> None:
        """Prevent a replica from renewing while it sees every change, so that it always has something to write.

        Its last response may be old: the write was applied long before the response was sent.
        """
        replica, late = self._anyone(), self._rng.choice([0.0, 4.0, 4.0])
        process, seconds = replica.process, self._rng.choice([4.0, 26.0, 26.0])
        if process is not None:
            self._trace.note("fault", f"{process.name} cannot renew after {late:g} s of late answers")
            now = asyncio.get_running_loop().time()
            self._server.shunned[process] = now + late
            self.later(late + seconds, lambda: self._server.shunned.pop(process, None))
            if replica.is_leading:
                self.alone_until = now + late + seconds

    def _hold(self) -> None:
        """Apply a replica's lease writes late, possibly when another replica already holds the lease."""
        replica, late = self._anyone(), self._rng.choice([8.0, 20.0, 20.0])
        process = replica.process
        if process is not None:
            self._trace.note("fault", f"renewals of {process.name} are carried out {late:g} s late")
            self._server.held[process] = late
            self.later(late, lambda: self._server.held.pop(process, None))
            if replica.is_leading:
                self.alone_until = asyncio.get_running_loop().time() + 2 * late

    # Gateways.

    def _fail_gateway(self) -> None:
        rng, gateway = self._rng, self._any_gateway()
        gateway.fault = AdminFaults(
            error=rng.choice([0, 0.3]),
            throttled=rng.choice([0, 0.2]),
            lost_request=rng.choice([0, 0.2]),
            lost_reply=rng.choice([0, 0.3, 0.9]),
            slow=rng.choice([0, 0.3]),
            hang=rng.choice([0, 0.1, 0.5]),
            guard_lag=rng.choice([0, 0.3]),
        )
        self._trace.note("fault", f"{gateway.name}: {gateway.fault}")
        self.later(rng.choice([1.0, 10.0, 40.0]), lambda: self._mend(gateway))

    def _close_gateway(self) -> None:
        gateway, refuses_key = self._any_gateway(), self._rng.random() < 0.5
        self._trace.note("fault", f"{gateway.name} {'refuses the key' if refuses_key else 'is down'}")
        gateway.fault = replace(gateway.fault, refuses_key=refuses_key, is_down=not refuses_key)
        seconds = self._rng.choice([0.5, 5.0, 40.0])
        self.later(seconds, lambda: self._mend(gateway))
        if refuses_key:
            self.alone_until = asyncio.get_running_loop().time() + min(seconds, 5.0)

    def _deafen(self) -> None:
        """Lose every response to the writes of some records: only these fail, so the gateway does not appear down.

        Meanwhile users create something, and delete it before it is confirmed.
        """
        gateway, share = self._any_gateway(), self._rng.choice([0.01, 0.3])
        self._trace.note("fault", f"{gateway.name}: writes of new records, and of {share:.0%}, are not answered")
        # No late writes as well: a retry would then be applied after its deadline, which cannot be prevented.
        gateway.fault = AdminFaults(deaf=share, curt=self._rng.random() < 0.4)
        self._waver(self._rng.choice([0.1, 1.0, 3.0]))
        self.later(self._rng.choice([5.0, 20.0, 40.0]), lambda: self._mend(gateway))

    def _dawdle(self) -> None:
        """Apply writes long after they were given up, and let users undo their changes meanwhile.

        At the end of it, a later write of a record takes effect before an earlier one.
        """
        if self._is_calm():
            gateway, seconds = self._any_gateway(), self._rng.choice([1.0, 4.0, 12.0])
            self._trace.note("fault", f"for {seconds:g} s {gateway.name} carries writes out {TOO_LATE:g} s late")
            gateway.fault = AdminFaults(late=TOO_LATE)
            self._waver(seconds + 1.0)
            self.later(seconds, lambda: self._mend(gateway))
            # Terms have to last; stops cover terms that end.
            self.alone_until = asyncio.get_running_loop().time() + seconds + TOO_LATE

    def _mend(self, gateway: SimGateway) -> None:
        gateway.fault = AdminFaults()

    def _meddle(self) -> None:
        """Edit and remove records manually, except records with references."""
        gateway, rng = self._any_gateway(), self._rng
        for kind, records in gateway.records.items():
            for id_, body in sorted(records.items()):
                if rng.random() < 0.1 and is_ours(kind, body):
                    if rng.random() < 0.6:
                        gateway.meddle((kind, id_), {**body, **rng.choice([{"desc": "edited"}, {"uris": ["/edited"]}])})
                    elif not gateway.users((kind, id_)):
                        gateway.meddle((kind, id_), None)

    def _restore(self) -> None:
        """Keep a backup, restore one, or lose everything except records of others."""
        gateway, rng = self._any_gateway(), self._rng
        mine = [records for owner, records in self._backups if owner is gateway]
        if rng.random() < 0.4 or not mine:
            self._backups.append((gateway, gateway.backup()))
            if rng.random() < 0.5:
                return
        strangers: dict[str, dict[str, Body]] = {}
        for (kind, id_), body in self._foreign.items():
            strangers.setdefault(kind, {})[id_] = body
        gateway.restore(rng.choice([*mine, strangers]))

    # Processes.

    def _kill(self) -> None:
        replica = self._anyone()
        if replica.process is not None:
            self._trace.note("fault", f"kill -9 of {replica.process.name}")
            self._spawn(self._kill_and_start(replica, self._rng.choice([0.1, 3.0, 30.0])))

    async def _kill_and_start(self, replica: Replica, seconds: float) -> None:
        await replica.kill()
        self.later(seconds, replica.start)

    def _freeze(self) -> None:
        self._freeze_one(self._anyone(), self._rng.choice([0.5, 4.0, 11.0, 13.0, 20.0, 60.0]))

    def _freeze_one(self, replica: Replica, seconds: float) -> None:
        process = replica.process
        if process is not None:
            self._trace.note("fault", f"{process.name} is frozen for {seconds:g} s")
            process.is_frozen = True
            replica.frozen_seconds += seconds
            self._spawn(self._thaw(process, seconds))

    async def _thaw(self, process: Process, seconds: float) -> None:
        await asyncio.sleep(seconds)
        process.is_frozen = False

    def _set_trap(self) -> None:
        """Let something happen to the process of the next writes, in the middle of one."""
        what = self._rng.choice(["kill", "freeze", "freeze", "linger", "linger"])
        point = "reply" if what == "linger" else self._rng.choice(["connect", "sent", "reply"])
        self._trap = (point, self._rng.randint(0, 6), what)

    def _linger(self, replica: Replica, gateway: SimGateway) -> None:
        """Delay the leader's next write until its lease is nearly over, and let that write take long."""
        self._freeze_one(replica, self._rng.uniform(11.0, 14.5))
        gateway.fault = AdminFaults(late=IN_TIME)
        self.later(40.0, lambda: self._mend(gateway))

    def _jump(self) -> None:
        replica = self._anyone()
        if replica.process is not None:
            replica.process.wall_offset += self._rng.choice([-3600.0, 3600.0])
            self._trace.note("fault", f"the clock of {replica.process.name} jumps")

    def _restart(self) -> None:
        """Stop a replica, often in the middle of writes that a gateway applies late.

        If they are given up by then, the lease has to last until then, so there must be no other fault.
        """
        rng, replica, gateway = self._rng, self._anyone(), self._any_gateway()
        if replica.process is None or replica.process.is_frozen:
            return
        seconds = rng.choice([0.0, 1.0, 3.0])
        late = rng.choice([0.0, IN_TIME, TOO_LATE if self._is_calm() else IN_TIME])
        self._trace.note("fault", f"{replica.process.name} is stopped in {seconds:g} s, {gateway.name} {late:g} s late")
        if late:
            gateway.fault = AdminFaults(late=late)
            self._waver(20.0)
            self.alone_until = asyncio.get_running_loop().time() + seconds + 2 * late
        self._spawn(self._stop_and_start(replica, gateway, replica.process, seconds))

    async def _stop_and_start(self, replica: Replica, gateway: SimGateway, process: Process, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if replica.process is process:
            await self._stop(replica)
        self._mend(gateway)
        replica.start()

    async def _stop(self, replica: Replica) -> None:
        loop, name, frozen = asyncio.get_running_loop(), replica.name, replica.frozen_seconds
        began = loop.time()
        await replica.stop()
        took = loop.time() - began - (replica.frozen_seconds - frozen)
        if took > STOP_SECONDS:
            self._trace.violate(name, f"it took {took:.1f} s to stop")

    def _is_calm(self) -> bool:
        """Return whether every replica can renew its lease and is not about to be frozen or killed."""
        processes = [replica.process for replica in self.replicas]
        return (
            self._server.fault == ApiFaults()
            and self._trap is None
            and not self._server.shunned
            and not self._server.held
            and all(each is not None and not each.is_frozen for each in processes)
            and all(self._server.state_of(each) == "up" for each in processes if each is not None)
        )

    def _anyone(self) -> Replica:
        """Return a replica, most often the leader."""
        leaders = [replica for replica in self.replicas if replica.is_leading]
        return leaders[0] if leaders and self._rng.random() < 0.7 else self._rng.choice(self.replicas)

    def _any_gateway(self) -> SimGateway:
        return self._rng.choice(self._gateways)

    def _spawn(self, work: Coroutine[Any, Any, None], *, name: str = "act") -> None:
        # A trap is called in the context of a replica, but its effects must run outside of it.
        loop = running_loop()
        self._background.append(loop.create_task(work, name=name, context=loop.world))
