"""The running controller that a command asks: at --url, or the leader, whose port kubectl forwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apisix_ingress.commands.common.connection import Connection

if TYPE_CHECKING:
    from apisix_ingress.commands.common.setup import Step
    from apisix_ingress.diagnostics.collect.leader import LeaderPod
    from apisix_ingress.diagnostics.collect.port_forward import Forwarding
    from apisix_ingress.model.json import JsonObject


@contextmanager
def leader_port(connection: Connection, local: int = 0) -> Iterator[tuple[LeaderPod, Forwarding]]:
    """Forward a local port to the leader's status page; 0: any free port.

    Raises:
        IngressError: There is no leader, or its port cannot be forwarded.
    """
    from apisix_ingress.diagnostics.collect.cluster_state import api_server
    from apisix_ingress.diagnostics.collect.leader import find_leader
    from apisix_ingress.diagnostics.collect.port_forward import Access, forwarded
    from apisix_ingress.runtime.clock import MonotonicClock

    settings = connection.settings()

    async def find(step: Step) -> LeaderPod:
        step("looking for the leader")
        async with api_server(settings) as api:
            return await find_leader(api, settings.kubernetes, MonotonicClock().now())

    pod = connection.run(find)
    access = Access(settings.kubernetes.kubeconfig, settings.kubernetes.context)
    remote = int(settings.http.listen.rpartition(":")[2])
    with forwarded(pod, remote, local=local, access=access) as found:
        yield pod, found


@contextmanager
def controller_url(url: str, connection: Connection) -> Iterator[str]:
    """Provide the URL of a controller: the given one, or if it is empty, that of the leader.

    Raises:
        IngressError: There is no leader, or its port cannot be forwarded.
    """
    if url:
        yield url
        return
    with leader_port(connection) as (_, port):
        yield port.url


def read_items(url: str, name: str, query: dict[str, str], connection: Connection) -> list[JsonObject]:
    """Return a list of the controller at a URL.

    Raises:
        IngressError: It cannot be read.
    """
    from apisix_ingress.diagnostics.collect.running_controller import read_list

    async def read(step: Step) -> list[JsonObject]:
        step(f"reading {name}")
        return [item async for item in read_list(url, name, query)]

    return connection.run(read)
