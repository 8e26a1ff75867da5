"""What shells offer for kinds, problem codes and hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from apisix_ingress.commands.common.connection import Connection
from apisix_ingress.commands.common.manifests import read_manifests
from apisix_ingress.commands.common.running import read_listing, understood
from apisix_ingress.commands.common.setup import Step
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import take_inventory
from apisix_ingress.errors import IngressError
from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.network.host_names import host_mistake
from apisix_ingress.model.problem_codes.table import CODES, NUMBERS

_SECONDS = "3s"
"""Time limit for reading hosts from an API server or a controller while a shell waits."""


def complete_kinds(before: Sequence[str]) -> Iterable[str]:
    """Offer the kinds that commands accept."""
    return RESOURCES


def complete_kinds_with_conditions(before: Sequence[str]) -> Iterable[str]:
    """Offer the kinds whose objects have a status."""
    return (kind for kind, row in RESOURCES.items() if row.status)


def complete_codes(before: Sequence[str]) -> Iterable[str]:
    """Offer the codes of problems: numbers and words."""
    return (*NUMBERS, *CODES)


def complete_hosts(before: Sequence[str]) -> Iterable[str]:
    """Offer the hosts of manifests (-f), of a running controller (--url) or of the API server; none on a failure.

    A shell inserts a candidate into the command line without quotes, so only valid host names are offered.
    """
    try:
        return sorted(host for host in _hosts(before) if not host_mistake(host))
    except (IngressError, OSError, SystemExit):
        return ()


def complete_hosts_and_kinds(before: Sequence[str]) -> Iterable[str]:
    """Offer hosts and kinds, for `tree`."""
    return (*complete_kinds(before), *complete_hosts(before))


def _hosts(before: Sequence[str]) -> set[str]:
    given = dict(pairwise(before))
    config = given.get("--config")
    connection = Connection(
        Path(config) if config else None, given.get("--kubeconfig"), given.get("--context"), deadline=_SECONDS
    )
    if url := given.get("--url"):
        with understood(url):
            return {str(each["host"]) for each in read_listing(url, "hosts", {}, connection)["items"]}
    path = given.get("-f") or given.get("--filename")
    bodies = _of_manifests(path, connection) if path else _of_api(connection)
    routes = (RouteFacts(key.id, body) for key, body in bodies.items() if key.kind == "routes")
    return {host for route in routes for host in route.hosts if host}


def _of_manifests(path: str, connection: Connection) -> Mapping[RecordKey, FrozenJson]:
    return read_manifests([path], connection.settings()).outcome.bodies()


def _of_api(connection: Connection) -> Mapping[RecordKey, FrozenJson]:
    settings = connection.settings()

    async def read(step: Step) -> Mapping[RecordKey, FrozenJson]:
        async with api_server(settings) as api:
            winners = (await take_inventory(api, settings)).winners()
        return {key: record.body for key, (_, record) in winners.items()}

    return connection.run(read)
