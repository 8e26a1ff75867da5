"""Stories about API servers that take minutes or a whole machine; `make faults` runs them, `make test` does not.

Lists of several pages, a restored backup, real rejections, a minute of silence, default lease times with slow
responses, ten minutes without an API server, revoked credentials, clock jumps. Measurements are recorded.
"""

import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

import crds
from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller
from e2e.faults.figures import note
from e2e.faults.history import compact, restart
from e2e.faults.stand import BASE, ROUTES, WATCHES, ApiStand, calm, stand
from e2e.traffic import RequestLoop

PAGE = 500
MANY = tuple(f"many-{number:03}" for number in range(PAGE + 40))
OUTAGE = float(os.environ.get("OUTAGE", "600"))
"""Seconds without an API server."""
SLOW = float(os.environ.get("SLOW", "180"))
"""Seconds with slow responses."""
ACCOUNT = "admin"
"""Service account of controllers that do not use the credentials of the API server's administrator."""

pytestmark = pytest.mark.timeout(max(600, 2 * OUTAGE))


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as started, started.client() as api:
        api.apply(crds.manifests())
        yield started


@pytest.fixture
def scene(
    cluster: LocalCluster, echo_servers: EchoServers, canary_search: object, tmp_path: Path
) -> Iterator[ApiStand]:
    with cluster.client() as api, stand(api, cluster.kubeconfig, echo_servers, tmp_path) as made:
        yield made
        assert made.wrong_deletes() == []


@contextmanager
def running(scene: ApiStand, kubeconfig: Path | None = None) -> Iterator[Controller]:
    """Run a controller with the default times."""
    with scene.controller(kubeconfig or scene.proxy.kubeconfig, name=f"own-{secrets.token_hex(2)}") as own:
        scene.until_right()
        yield own


def test_history_compacted_between_two_pages_restarts_the_list(scene: ApiStand, cluster: LocalCluster) -> None:
    # A cache would still have the history that etcd has compacted.
    restart(cluster, "--watch-cache=false")
    scene.put(*MANY)
    with running(scene):
        lists = len(scene.asked("list"))
        second = {"verb": "list", "resource": ROUTES, "query": ".*continue=.*"}
        scene.proxy.play(
            {"match": WATCHES, "action": "gone", "times": 1},
            {"match": second, "action": "delay", "seconds": 2, "times": 1},
        )
        scene.until_played("delay")
        scene.drop(MANY[-1])
        compact(cluster)
        note("F-3", caught_up_s=round(scene.until_right(), 2), how="between two pages of a list")
        assert len(scene.proxy.log.lines("answer", status=410)) == 1
        assert len(scene.asked("list", after=lists)) == 4


def test_an_old_backup_of_etcd_is_followed(scene: ApiStand, cluster: LocalCluster) -> None:
    backup, etcd = cluster.root / "backup", cluster._processes["etcd"]

    def stop() -> None:
        cluster.kill_apiserver()
        etcd.stop(grace=10.0)

    def begin() -> None:
        etcd.start()
        cluster.start_apiserver()

    with running(scene) as own:
        stop()
        shutil.copytree(cluster.layout.etcd_data, backup)
        begin()
        then = dict(scene.want)
        for _ in range(5):
            scene.change()
            scene.until_right()
        stop()
        shutil.rmtree(cluster.layout.etcd_data)
        shutil.copytree(backup, cluster.layout.etcd_data)
        begin()
        scene.go_back(then)
        note("F-5", caught_up_s=round(scene.until_right(300), 2), how="old backup of etcd restored")
        calm(scene, own)


def test_the_controller_survives_an_api_server_that_accepts_few_requests(
    scene: ApiStand, cluster: LocalCluster, tmp_path: Path
) -> None:
    """Real rejections: other clients use nearly all of the capacity, no request is queued, twelve kinds need a list.

    The controller has an account of its own: the API server never rejects requests of `system:masters`.
    """
    flags = ("--max-requests-inflight=2", "--max-mutating-requests-inflight=2", "--enable-priority-and-fairness=false")
    make_account(scene)
    token = scene.api.account_token(ACCOUNT, namespace=scene.namespace)
    kubeconfig = kubeconfig_of(scene, {"token": token}, tmp_path / "account.kubeconfig")
    with running(scene, kubeconfig) as own:
        restart(cluster, *flags)
        calm(scene, own)
        lists, early, ended = len(scene.proxy.requests(verb="list")), refusals(scene), threading.Event()
        crowd = [threading.Thread(target=shout, args=(cluster, ended), name="e2e-noise") for _ in range(20)]
        for each in crowd:
            each.start()
        try:
            scene.proxy.play({"match": {"verb": "watch"}, "action": "gone", "times": 12})
            wait_until(lambda: refusals(scene), lambda got: got > early + 2, "429s", 120.0)
        finally:
            ended.set()
            for each in crowd:
                each.join(30)
        scene.change()
        caught_up = scene.until_right()
        calm(scene, own)
        asked, refused = len(scene.proxy.requests(verb="list")) - lists, refusals(scene) - early
        note("F-7", caught_up_s=round(caught_up, 2), refused=refused, lists_asked=asked)
        assert asked <= 12 + refused


def refusals(scene: ApiStand) -> int:
    """Return the number of requests that the API server rejected for lack of seats."""
    return len(scene.proxy.log.lines("answer", status=429))


def shout(cluster: LocalCluster, ended: threading.Event) -> None:
    """List Secrets and check permissions continuously, whatever the response."""
    what = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    review = {**what, "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    with cluster.client() as api:
        while not ended.is_set():
            api._http.get("/api/v1/secrets")
            api._http.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review)


@pytest.mark.parametrize("slowest", [4.0, 7.0], ids=["2 to 4 s", "2 to 7 s"])
def test_slow_answers_and_the_default_lease(scene: ApiStand, slowest: float) -> None:
    """A response may take renew_deadline less retry_period, 8 s, minus a margin for a loaded machine."""
    with running(scene) as own:
        scene.proxy.play({"action": "delay", "seconds": [2.0, slowest]})
        began = time.monotonic()
        while time.monotonic() - began < SLOW:
            scene.change()
            scene.until_right(120)
        terms = len(own.events("term.started"))
        note("F-2", seconds=SLOW, slowest_s=slowest, terms=terms, overlapping_lists=len(scene.overlapping()))
        assert (terms, scene.overlapping()) == (1, [])


def test_ten_minutes_without_an_api_server(scene: ApiStand, cluster: LocalCluster) -> None:
    with (
        running(scene, cluster.kubeconfig) as own,
        RequestLoop(scene.traffic, scene.host, scene.want[BASE[-1]]) as loop,
    ):
        cluster.kill_apiserver()
        writes, began = scene.writes(), time.monotonic()
        wait_until(lambda: time.monotonic() - began, lambda got: got >= OUTAGE, "the outage to last", OUTAGE + 10)
        assert (own.probe("/healthz")[0], own.probe("/readyz")[0], scene.writes()) == (200, 503, writes)
        cluster.start_apiserver()
        scene.change()
        note("F-1", outage_s=OUTAGE, caught_up_s=round(scene.until_right(), 2), failed_requests=len(loop.failures))
        assert loop.failures == []


def make_account(scene: ApiStand) -> None:
    """Create a service account with the permissions of an administrator."""
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": scene.namespace}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": scene.namespace}
    binding = {**rbac, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]}
    scene.api.apply([account, binding], namespace=scene.namespace)


def kubeconfig_of(scene: ApiStand, user: Manifest, path: Path) -> Path:
    """Write a kubeconfig that connects through the proxy with these credentials."""
    config = yaml.safe_load(scene.proxy.kubeconfig.read_text())
    config["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(config))
    return path


def bound_token(scene: ApiStand, secret: str) -> str:
    """Return a token that is valid until a Secret is deleted."""
    scene.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}}, namespace=scene.namespace)
    uid = scene.api.get("Secret", secret, namespace=scene.namespace)["metadata"]["uid"]
    spec = {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": uid}}
    path = f"/api/v1/namespaces/{scene.namespace}/serviceaccounts/{ACCOUNT}/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {**spec, "expirationSeconds": 600},
    }
    return str(scene.api.request("POST", path, body=body)["status"]["token"])


PLUGIN = """#!/bin/sh
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat TOKEN)"
"""


@pytest.mark.parametrize("way", ["file", "plugin"])
def test_an_expired_token_is_replaced(scene: ApiStand, cluster: LocalCluster, tmp_path: Path, way: str) -> None:
    make_account(scene)
    token, plugin = tmp_path / "token", tmp_path / "plugin"
    token.write_text(bound_token(scene, "first"))
    plugin.write_text(PLUGIN.replace("TOKEN", str(token)))
    plugin.chmod(0o700)
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    user = {"tokenFile": str(token)} if way == "file" else {"exec": command}
    kubeconfig = kubeconfig_of(scene, user, tmp_path / "rotated.kubeconfig")
    with running(scene, kubeconfig) as own:
        old = token.read_text()
        token.write_text(bound_token(scene, "second"))
        scene.api.delete("Secret", "first", namespace=scene.namespace)
        # The API server caches for ten seconds that a token was valid.
        wait_until(lambda: refuses(cluster, old), bool, "the old token to be dead", 60.0)
        scene.proxy.play({"match": {"verb": "watch"}, "action": "end", "times": 12})
        scene.change()
        scene.until_right()
        renewed = len(scene.asked("patch", "leases"))
        wait_until(lambda: len(scene.asked("patch", "leases")), lambda got: got > renewed + 1, "renewals")
        refused = len(scene.proxy.log.lines("answer", status=401))
        # Requests in flight with the old token are rejected and sent again immediately, so that no call fails.
        failed = [line for line in own.events("reflector.failed") if line["reason"] == "forbidden"]
        failed += own.events("lease.unavailable")
        note("F-18", way=way, refused=refused, failed=len(failed), terms=len(own.events("term.started")))
        assert (failed, len(own.events("term.started"))) == ([], 1)
        assert refused <= (0 if way == "file" else WATCHED)


def refuses(cluster: LocalCluster, token: str) -> bool:
    """Return whether the API server rejects a token."""
    with KubeClient.from_kubeconfig(cluster.kubeconfig, token=token) as api:
        try:
            api.request("GET", "/api/v1/namespaces/default")
        except KubeApiError as error:
            return error.status == 401
    return False


WATCHED = 12
"""Number of watched kinds, and of concurrent requests when all watches end."""
JUMPS = (1, -1, 24, 0)
"""Hours by which the wall clock is wrong, one after another."""
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long shift(void) {
    long seconds = 0; FILE *file = fopen(getenv("CLOCK_SHIFT"), "r");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (!failed && which == CLOCK_REALTIME) now->tv_sec += shift();
    return failed;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="the shim that moves a process's wall clock needs a C compiler")
def test_a_jumping_wall_clock_moves_no_deadline(scene: ApiStand, tmp_path: Path) -> None:
    source, shim, shift = tmp_path / "shim.c", tmp_path / "shim.so", tmp_path / "shift"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    shift.write_text("0")
    first, second = (scene.controller(scene.proxy.kubeconfig, name=name) for name in ("first", "second"))
    first.process.command = ["env", f"LD_PRELOAD={shim}", f"CLOCK_SHIFT={shift}", *first.process.command]
    with first:
        wait_until(lambda: first.leads, bool, "the first one to lead")
        with second:
            days = set()
            for hours in JUMPS:
                shift.write_text(str(hours * 3600))
                # More than the lease duration: a replica that relied on the wall clock would have lost or taken the
                # lease.
                want = len(scene.asked("patch", "leases")) + 9
                wait_until(partial(renewed_since, scene, want), bool, "time to pass", 90.0)
                lease = scene.api.get("Lease", f"lease-{scene.namespace}", namespace="default")
                days.add(lease["spec"]["renewTime"][:10])
                scene.change()
                scene.until_right()
            terms = (len(first.events("term.started")), len(second.events("term.started")))
            note("F-17", jumps_h=JUMPS, terms=terms)
            assert (terms, first.leads, second.leads) == ((1, 0), True, False)
            assert len(days) > 1, "the wall clock did not jump"


def renewed_since(scene: ApiStand, want: int) -> bool:
    """Return whether the lease was renewed more often than that."""
    return len(scene.asked("patch", "leases")) > want
