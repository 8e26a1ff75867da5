"""Stories with a separate API server whose history etcd compacts, and from which a kind is removed.

Nothing here is simulated: real etcd and kube-apiserver cause the errors. Measurements are recorded.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import crds
from e2e.cluster.client import KubeClient, wait_until
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller
from e2e.faults.figures import note
from e2e.faults.history import compact, restart
from e2e.faults.stand import PATIENCE, WATCHES, ApiStand, in_order

FAILURES = "apisix_ingress_controller_watch_failures_total"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster whose lists and watches read from etcd: no cache has what was compacted."""
    with LocalCluster() as started:
        restart(started, "--watch-cache=false")
        with started.client() as api:
            api.apply(crds.manifests())
        yield started


@pytest.fixture(scope="module")
def fault_server(cluster: LocalCluster) -> Iterator[tuple[KubeClient, Path]]:
    with cluster.client() as api:
        yield api, cluster.kubeconfig


@pytest.fixture(scope="module")
def own(made: ApiStand) -> Iterator[Controller]:
    with made.controller(made.proxy.kubeconfig) as started:
        made.until_right()
        yield started


@pytest.fixture
def scene(made: ApiStand, own: Controller) -> Iterator[ApiStand]:
    with in_order(made, own):
        yield made


def test_compacted_history_causes_one_list(scene: ApiStand, cluster: LocalCluster, own: Controller) -> None:
    scene.proxy.play({"match": WATCHES, "action": "stall"})
    scene.until_played("stall")
    scene.change()
    # While watches are rejected, the controller cannot read past the compacted revisions.
    refused = len(scene.asked("watch"))
    scene.proxy.play(
        {"match": WATCHES, "action": "end", "times": 1}, {"match": WATCHES, "action": "status", "status": 503}
    )
    wait_until(lambda: len(scene.asked("watch")), lambda got: got > refused, "a watch to be turned away")
    compact(cluster)
    lists, gone = len(scene.asked("list")), own.metric(FAILURES, kind="ApisixRoute", reason="gone")
    scene.proxy.play()
    note("F-3", caught_up_s=round(scene.until_right(), 2), how="etcd compaction")
    # The API server reports it in an event of the watch.
    assert own.metric(FAILURES, kind="ApisixRoute", reason="gone") == gone + 1
    assert len(scene.asked("list", after=lists)) == 1


def test_a_crd_that_is_deleted_and_recreated_affects_no_other_kind(scene: ApiStand, own: Controller) -> None:
    definition = next(each for each in crds.manifests() if each["spec"]["names"]["kind"] == "ApisixConsumer")
    writes = scene.writes()
    scene.api.delete("CustomResourceDefinition", definition["metadata"]["name"])
    wait_until(lambda: is_absent(own, "ApisixConsumer"), bool, "it to notice", PATIENCE)
    scene.change()
    scene.until_right()
    assert (own.probe("/readyz")[0], scene.wrong_deletes(writes)) == (200, [])
    scene.api.apply(definition)
    began = time.monotonic()
    wait_until(lambda: is_absent(own, "ApisixConsumer"), lambda absent: not absent, "its return", PATIENCE)
    note("F-24", picked_up_s=round(time.monotonic() - began, 1))
    spec = {"authParameter": {"keyAuth": {"value": {"key": f"key-of-{scene.namespace}"}}}}
    meta = {"name": "back", "namespace": scene.namespace}
    scene.api.apply({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixConsumer", "metadata": meta, "spec": spec})
    wait_until(lambda: scene.gateway.records("consumers"), lambda got: len(got) == 1, "a consumer")


def is_absent(own: Controller, kind: str) -> bool:
    """Return whether the controller treats a kind as absent from the API server."""
    return bool([line for line in own.events("reflector.synced") if line["kind"] == kind][-1]["absent"])
