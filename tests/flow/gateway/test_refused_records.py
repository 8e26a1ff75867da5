"""Settings that forbid existing records: the records are deleted, however many there are."""

from pathlib import Path

from apisix_ingress.model.kinds.table import CUSTOM_GROUP
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Manifest
from tests.flow.program import meta, put_world, route, running

FEW = 25
"""More than the mass-delete guard allows."""


def custom(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": f"{CUSTOM_GROUP}/v2", "kind": kind, "metadata": meta(name), "spec": spec}


async def test_routes_that_a_setting_refuses_are_deleted(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    code = {"name": "serverless-pre-function", "enable": True, "config": {"functions": ["return function() end"]}}
    for name in names[1:]:
        item = route(name)
        item["spec"]["http"][0]["plugins"] = [code]
        server.put(item)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)

    async with running(server, gateway, tmp_path, code_plugins="refuse") as app:
        await app.until_served(names[0])


async def test_rules_for_every_host_are_deleted(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)

    async with running(server, gateway, tmp_path, host_ownership="namespace") as app:
        await app.until_served()


async def test_consumers_get_their_new_names(server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path) -> None:
    server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    for number in range(FEW):
        keys = {"authParameter": {"keyAuth": {"value": {"key": f"key-{number}"}}}}
        server.put(custom("ApisixConsumer", f"team-{number}", keys))
    before = {f"default_team_{number}" for number in range(FEW)}
    after = {f"default_team-{number}" for number in range(FEW)}
    async with running(server, gateway, tmp_path) as app:
        await app.until(lambda: set(gateway.records.get("consumers", ())) == before, "the old names")

    async with running(server, gateway, tmp_path, consumer_names="unambiguous") as app:
        await app.until(lambda: set(gateway.records.get("consumers", ())) == after, "the new names")
