"""The ledger in a ConfigMap, against an API server over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apisix_ingress.errors import KubeConflict, KubeError, KubeUnavailable
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.config_map_ledger import ATTEMPTS, ConfigMapLedger
from apisix_ingress.model.keys import RecordKey
from tests.fakes.kube.apiserver import FakeApiServer, Fault, Manifest

A, B = RecordKey("global_rules", "a1"), RecordKey("plugin_metadata", "http-logger")
NAME = "apisix-ingress-ledger"


@pytest.fixture
async def api(server: FakeApiServer, tmp_path: Path) -> AsyncIterator[KubeApi]:
    async with await KubeApi.connect(str(server.kubeconfig(tmp_path / "kubeconfig"))) as connected:
        yield connected


@pytest.fixture
def ledger(api: KubeApi) -> ConfigMapLedger:
    return new_ledger(api)


def new_ledger(api: KubeApi) -> ConfigMapLedger:
    return ConfigMapLedger(api, "default", "apisix-ingress")


def stored(server: FakeApiServer) -> dict[str, list[str]]:
    found = server.get("configmaps", NAME)
    return {cluster: json.loads(text) for cluster, text in found["data"].items()} if found else {}


def requests(server: FakeApiServer) -> list[str]:
    return [seen.verb for seen in server.seen if seen.plural == "configmaps"]


def config_map(**data: str) -> Manifest:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": NAME}, "data": data}


async def test_an_empty_ledger_causes_one_read_per_term(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    assert await ledger.keys("east") == await ledger.keys("west") == frozenset()
    await ledger.forget("east", [A])
    assert requests(server) == ["get"]
    ledger.renew()
    await ledger.keys("east")
    assert requests(server) == ["get", "get"]


async def test_entries_outlive_the_process(server: FakeApiServer, api: KubeApi, ledger: ConfigMapLedger) -> None:
    assert await ledger.note("east", [A, B])
    assert await ledger.note("west", [B])
    assert stored(server) == {"east": [str(A), str(B)], "west": [str(B)]}
    heir = new_ledger(api)
    assert (await heir.keys("east"), await heir.keys("west")) == (frozenset({A, B}), frozenset({B}))


async def test_recorded_entries_cause_no_write(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    await ledger.note("east", [A])
    before = len(requests(server))
    assert not await ledger.note("east", [A])
    assert len(requests(server)) == before


async def test_forgotten_entries_are_removed(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    await ledger.note("east", [A, B])
    await ledger.forget("east", [A])
    assert (await ledger.keys("east"), stored(server)) == (frozenset({B}), {"east": [str(B)]})
    await ledger.forget("east", [B])
    assert stored(server) == {}


async def test_simultaneous_changes_are_written_together(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    keys = [RecordKey("global_rules", f"{number:x}") for number in range(16)]
    await asyncio.gather(*(ledger.note("east", [key]) for key in keys))
    assert await ledger.keys("east") == frozenset(keys)
    assert requests(server) == ["get", "create"]


async def test_a_conflict_is_retried_on_the_current_version(
    server: FakeApiServer, api: KubeApi, ledger: ConfigMapLedger
) -> None:
    await ledger.note("east", [A])
    other = new_ledger(api)
    await other.note("west", [B])
    await ledger.note("east", [B])
    assert stored(server) == {"east": [str(A), str(B)], "west": [str(B)]}


async def test_two_concurrent_creations_both_succeed(server: FakeApiServer, api: KubeApi) -> None:
    ledgers = [new_ledger(api), new_ledger(api)]
    for each in ledgers:
        await each.keys("east")
    await asyncio.gather(ledgers[0].note("east", [A]), ledgers[1].note("east", [B]))
    assert stored(server) == {"east": [str(A), str(B)]}


async def test_a_ledger_that_was_removed_is_recreated(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    await ledger.note("east", [A])
    server.remove("configmaps", NAME)
    await ledger.note("east", [B])
    assert stored(server) == {"east": [str(B)]}


async def test_endless_conflicts_are_given_up(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    server.faults.append(Fault(verb="create", plural="configmaps", status=409))
    with pytest.raises(KubeConflict):
        await ledger.note("east", [A])
    assert requests(server).count("create") == ATTEMPTS


@pytest.mark.parametrize("apply", [False, True])
async def test_a_failed_write_is_retried_with_the_next_one(
    server: FakeApiServer, ledger: ConfigMapLedger, apply: bool
) -> None:
    server.faults.append(Fault(verb="create", plural="configmaps", status=503, times=1, apply=apply))
    with pytest.raises(KubeUnavailable):
        await ledger.note("east", [A])
    await ledger.note("east", [A])
    assert stored(server) == {"east": [str(A)]}


async def test_failure_of_one_of_two_equal_changes_is_not_success(
    server: FakeApiServer, ledger: ConfigMapLedger
) -> None:
    server.faults.append(Fault(verb="create", plural="configmaps", status=503, times=1))
    got = await asyncio.gather(ledger.note("east", [A]), ledger.note("east", [A]), return_exceptions=True)
    assert [isinstance(item, KubeError) for item in got] == [True, False]
    assert stored(server) == {"east": [str(A)]}


async def test_the_later_of_two_opposite_changes_wins(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    await ledger.note("east", [A, B])
    await asyncio.gather(ledger.forget("east", [A]), ledger.note("east", [A]))
    assert stored(server) == {"east": [str(A), str(B)]}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("no json", set()),
        ("{}", set()),
        ('["global_rules/a1", 5, "nonsense", "routes", "unknown/x", "plugin_metadata/http-logger"]', {A, B}),
    ],
)
async def test_valid_entries_of_an_edited_ledger_are_used(
    server: FakeApiServer, ledger: ConfigMapLedger, text: str, want: set[RecordKey]
) -> None:
    server.put(config_map(east=text, west=json.dumps([str(B)])))
    assert (await ledger.keys("east"), await ledger.keys("west")) == (frozenset(want), frozenset({B}))


async def test_a_ledger_without_data_is_empty(server: FakeApiServer, ledger: ConfigMapLedger) -> None:
    manifest = config_map()
    del manifest["data"]
    server.put(manifest)
    assert await ledger.keys("east") == frozenset()


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        '{"metadata": {"resourceVersion": "7"}}',
        f'{{"metadata": {{"name": "{NAME}"}}}}',
        f'{{"metadata": {{"name": "{NAME}", "resourceVersion": "7"}}, "data": ["east"]}}',
    ],
    ids=["nothing", "no name", "no version", "data no mapping"],
)
async def test_an_object_that_is_not_a_ledger_is_not_read_as_an_empty_one(
    server: FakeApiServer, ledger: ConfigMapLedger, answer: str
) -> None:
    server.put(config_map(east='["global_rules/a1"]'))
    server.faults.append(Fault("get", "configmaps", status=200, body=answer, times=1))
    with pytest.raises(KubeUnavailable, match="the response is not this ConfigMap"):
        await ledger.keys("east")
    assert await ledger.keys("east") == {A}


async def test_a_write_succeeds_only_if_the_response_contains_the_ledger(
    server: FakeApiServer, ledger: ConfigMapLedger
) -> None:
    server.faults.append(Fault("create", "configmaps", status=200, body="{}", times=1))
    with pytest.raises(KubeUnavailable, match="the response is not this ConfigMap"):
        await ledger.note("east", [A])
    assert stored(server) == {}
    assert await ledger.note("east", [A])
    assert stored(server) == {"east": ["global_rules/a1"]}
