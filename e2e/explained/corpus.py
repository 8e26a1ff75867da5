"""Compares `explain` with a gateway for the objects and requests of the recorded ingress-nginx corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aiohttp

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from e2e.explained.compare import Backends, Comparison, Target, compared, probe_of, serving
from e2e.nginx.client import Client
from e2e.nginx.corpus import Case, cases
from e2e.nginx.replay import Gateway
from e2e.nginx.world import Certificates, Cluster

Json = dict[str, Any]

_PLAIN = frozenset({"http", "echo"})
"""Kinds of backends that the servers of a comparison can stand for."""


def comparable(every: int = 1) -> list[Case]:
    """Return the cases whose backends are plain HTTP servers, or only each n-th of them."""
    found = [case for case in cases() if not case.why_skipped and set(case.backends.values()) <= _PLAIN]
    found = [case for case in found if not case.name.startswith("protocol-")]
    return found[::every]


async def compare_corpus(target: Target, wanted: Sequence[Case]) -> list[Comparison]:
    """Compare every request of some cases."""
    certificates, found = Certificates(), list[Comparison]()
    client = Client(target.host, target.http, target.https, certificates.context)
    async with serving() as backends, aiohttp.ClientSession() as session:
        gateway = Gateway(session, target.admin_url, target.admin_key, client)
        for case in wanted:
            run = _Run(case, gateway, client, backends, target)
            found += [Comparison(each.verdict, f"{case.name}: {each.text}") for each in await run.steps(certificates)]
        await gateway.show({})
    return found


def _is_expressible(asked: Json) -> bool:
    """Return whether `explain` can express a request.

    It has a path without spaces, over HTTP/1.1, and each header once.
    """
    names = [str(name).lower() for name, _ in asked.get("headers", ())]
    place = f"{asked.get('host') or ' '}{asked['path']}"
    is_plain = not (asked.get("h2") or asked.get("jar")) and asked.get("version", "1.1") == "1.1"
    is_plain = is_plain and asked["path"].startswith("/") and place.isprintable() and " " not in place
    return is_plain and len(set(names)) == len(names) and "host" not in names


class _Run:
    """One case at a gateway."""

    def __init__(self, case: Case, gateway: Gateway, client: Client, backends: Backends, target: Target) -> None:
        self._case = case
        self._gateway = gateway
        self._client = client
        self._backends = backends
        self._target = target

    async def steps(self, certificates: Certificates) -> list[Comparison]:
        """Send the requests of the case and compare the responses."""
        services = dict.fromkeys(self._case.about.get("services", {}), "10.244.0.1")
        addresses = {name: f"10.244.1.{number + 1}" for number, name in enumerate(self._case.backends)}
        cluster, found = Cluster(self._case, certificates, addresses, services), list[Comparison]()
        records = await self._written(cluster)
        for asked, _ in self._case.steps:
            if "path" not in asked:
                cluster.apply(asked.get("apply", []))
                for kind, name in asked.get("delete", []):
                    cluster.delete(kind, name)
                cluster.services.update({name: text.split() for name, text in asked.get("endpoints", {}).items()})
                records = await self._written(cluster)
            elif _is_expressible(asked):
                sent = {**asked, "src": ""}
                got = await self._client.send(sent, {})
                port = self._target.https if asked.get("scheme") == "https" else self._target.http
                found.append(compared(probe_of(sent, port), records, got, str(got.get("backend") or "")))
        return found

    async def _written(self, cluster: Cluster) -> dict[RecordKey, FrozenJson]:
        records: dict[RecordKey, FrozenJson] = {
            key: self._backends.placed(body) for key, body in cluster.records().items()
        }
        rejected = await self._gateway.show(records)
        return {key: body for key, body in records.items() if not any(str(key) in each for each in rejected)}
