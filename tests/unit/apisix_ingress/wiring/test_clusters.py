"""Building clusters: which key is used, warnings about it, and what moving a cluster changes."""

import math
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import ConfigError
from apisix_ingress.gateway.ledger import MemoryLedger
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.gateway.sync.observer import SyncObserver
from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.secrets.redaction import redact_text
from apisix_ingress.settings import load_settings
from apisix_ingress.state.ids.id_table import IdTable
from apisix_ingress.wiring.clusters import (
    BULK_BACKLOG,
    CHANGE_SECONDS,
    GatewayCluster,
    GatewayClusters,
    Wiring,
    connect_all,
    ledger_name,
)
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import FakeWanted

PUBLISHED = "4054f7cf07e344346cd3f287985e76a2"


async def never_translated() -> None:
    raise AssertionError("no id changes")


def connect(*, preset: str = "", **cluster: Any) -> GatewayCluster:
    settings = load_settings(overrides={"preset": preset, "clusters": [cluster]})
    wiring = Wiring(
        MemoryLedger(),
        FakeWanted(),
        FakeClock(),
        random.Random(0),
        agent="test",
        on_request=lambda method, path, status, seconds: None,
        observer=SyncObserver(),
        adoptions=IdAdoption(IdTable(lambda read: None), FakeWanted(), never_translated, clock=FakeClock()),
    )
    (found,) = connect_all(settings, "apisix-ingress", wiring)
    return found


def test_published_key_in_a_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(PUBLISHED)
    with capture_logs() as logs:
        connect(admin_key_file=str(file))
    (line,) = logs
    assert (line["event"], line["log_level"], PUBLISHED in str(line)) == ("settings.caution", "warning", False)
    assert f"admin_key_file {file}: holds what is a key from APISIX's default configuration" in line["caution"]


def test_published_key_in_a_file_is_an_error_with_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(PUBLISHED)
    with pytest.raises(ConfigError, match=r"is a key from APISIX's default configuration.*preset: multi-tenant"):
        connect(admin_key_file=str(file), preset="multi-tenant")


async def test_moved_cluster_asks_the_new_address_with_the_new_key_and_home_with_the_old_one() -> None:
    async with FakeAdminApi() as home, FakeAdminApi() as other:
        other.key = "another-key"
        cluster = connect(admin_url=home.url, admin_key=home.key)
        try:
            await cluster.read("routes")
            cluster.move(AdminAddress(other.url, other.key))
            await cluster.read("upstreams")
            await cluster.probe()
            cluster.move(None)
            await cluster.read("ssls")
        finally:
            await cluster.aclose()
        asked = [[path for _, path in gateway.seen] for gateway in (home, other)]
        assert asked == [["routes", "ssls"], ["upstreams", "routes"]]
    assert "another-key" not in redact_text("the key another-key")


def test_each_address_has_its_own_ledger() -> None:
    home, one, two = (f"http://{host}:9180/apisix/admin" for host in ("home", "one", "two"))
    names = [ledger_name("default", url, home=home) for url in (home, one, two)]
    assert names[0] == "default"
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"[-._a-z0-9]+", name) for name in names)  # keys of a ConfigMap


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (AdminAddress("https://127.0.0.1:9180/apisix/admin", PUBLISHED), "is a key from APISIX's default"),
        (AdminAddress("http://gateway:9180/apisix/admin", "sesame"), "plain http to another machine"),
    ],
)
def test_risky_address_of_an_object_is_reported_without_its_key(address: AdminAddress, words: str) -> None:
    with capture_logs() as logs:
        connect().move(address)
    reported = [line["caution"] for line in logs if line["event"] == "settings.caution"]
    assert [words in line for line in reported] == [True]
    assert address.key not in str(logs)


def _of_cluster(values: dict[str, object], sync: ClusterSync) -> object:
    return values[sync.name]


def load_of(monkeypatch: pytest.MonkeyPatch, **state: object) -> str:
    """Return the load of two clusters, of which the second is in this state, and nothing happened in the first."""
    clusters = GatewayClusters()
    for cluster in (connect(), connect()):
        cluster.name = cluster.sync.name = f"cluster-{len(clusters.syncs)}"
        clusters.add(cluster)
    quiet = {"taken_over": True, "outage": None, "backlog": 0, "quiet_for": math.inf}
    for name, value in quiet.items():
        values = {"cluster-0": value, "cluster-1": state.get(name, value)}
        monkeypatch.setattr(ClusterSync, name, property(partial(_of_cluster, values)))
    return clusters.load


@pytest.mark.parametrize(
    ("state", "load"),
    [
        ({}, "idle"),
        ({"quiet_for": 0.9 * CHANGE_SECONDS}, "changes"),
        ({"quiet_for": CHANGE_SECONDS}, "idle"),
        ({"backlog": BULK_BACKLOG}, "idle"),
        ({"backlog": BULK_BACKLOG + 1}, "bulk"),
        ({"backlog": BULK_BACKLOG + 1, "taken_over": False}, "idle"),
    ],
)
def test_load_is_that_of_the_busiest_cluster(
    monkeypatch: pytest.MonkeyPatch, state: dict[str, object], load: str
) -> None:
    assert load_of(monkeypatch, **state) == load
