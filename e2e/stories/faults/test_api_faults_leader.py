"""Stories about a leader without API server, permissions, CPU time or output, or with a slow API server.

A record at the gateway is damaged continuously. The leader repairs it, which shows how long it writes. Measurements are
recorded.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.model.kinds.table import RESOURCES
from crds import KINDS
from e2e.cluster.client import Manifest, wait_until
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller
from e2e.faults.figures import note
from e2e.faults.proxies.api_proxy import ApiProxy
from e2e.faults.stand import ROUTES, ApiStand
from e2e.stories.faults.test_leadership import AGENT, ELECTION, LEASE, SYNC, TAKEOVER
from e2e.stream import Stream
from e2e.traffic import RequestLoop

FEW = ("web-0", "web-1", "web-2")
PATIENT = {"lease_duration": "9s", "renew_deadline": "6s", "retry_period": "0.5s"}
LAG = "apisix_ingress_controller_event_loop_lag_seconds"
Start = Callable[..., Controller]


@pytest.fixture(scope="module")
def fault_routes() -> Sequence[str]:
    return FEW


@pytest.fixture
def scene(made: ApiStand) -> Iterator[ApiStand]:
    yield made
    made.proxy.play()
    assert made.wrong_deletes() == []


@pytest.fixture
def start(scene: ApiStand) -> Iterator[Start]:
    """A function that starts a controller with short renewal and audit intervals, and waits until it leads."""
    with ExitStack() as stack:

        def begin(kubeconfig: Path | None = None, **kubernetes: Any) -> Controller:
            settings = {"election": {**ELECTION, "name": f"lease-{scene.namespace}"}, **kubernetes}
            name = f"own-{secrets.token_hex(2)}"
            own = scene.controller(kubeconfig or scene.proxy.kubeconfig, name=name, kubernetes=settings, sync=SYNC)
            stack.enter_context(own)
            wait_until(lambda: own.leads, bool, "it to lead", TAKEOVER)
            scene.until_right()
            return own

        yield begin
        scene.proxy.play()


def damage(scene: ApiStand) -> Stream:
    """Damage a record repeatedly."""
    broken = min(scene.gateway.records("routes"))

    def edit(_number: int) -> None:
        scene.gateway.call("PATCH", f"/routes/{broken}", {"desc": "edited by hand"})

    return Stream(edit, pause=0.2)


def repairs(scene: ApiStand, after: int = 0) -> list[Manifest]:
    """Return the writes of controllers."""
    return [write for write in scene.gateway.write_log(after) if (write["user_agent"] or "").startswith(AGENT)]


def renewed_at(scene: ApiStand) -> float:
    """Return when the last successful renewal was sent."""
    done = {line["number"] for line in scene.proxy.log.lines("answer", status=200)}
    return max(float(line["monotonic"]) for line in scene.asked("patch", "leases") if line["number"] in done)


@pytest.mark.parametrize("way", ["killed", "partition"])
def test_a_leader_without_api_server_writes_no_longer_than_its_lease(
    scene: ApiStand, start: Start, local_cluster: LocalCluster, way: str
) -> None:
    own = start()
    with damage(scene), RequestLoop(scene.traffic, scene.host, scene.want[FEW[0]]) as loop:
        before = scene.writes()
        wait_until(lambda: len(repairs(scene, before)), lambda got: got > 1, "it to repair", TAKEOVER)
        if way == "killed":
            local_cluster.kill_apiserver()
        else:
            scene.proxy.play({"action": "hang"}, {"action": "stall"})
        wait_until(lambda: own.leads, lambda leads: not leads, "it to stop", TAKEOVER)
        stopped, answers = scene.writes(), len(loop.answers)
        # No controller repairs these any more: twelve manual edits, one every 0.2 s.
        wait_until(scene.writes, lambda got: got > stopped + 12, "more damage", TAKEOVER)
        wait_until(lambda: len(loop.answers), lambda got: got > answers + 50, "more requests")
        last, renewed = repairs(scene)[-1]["received"], renewed_at(scene)
        assert last <= renewed + LEASE
        assert own.probe("/healthz")[0] == 200
        if way == "killed":
            status, body = own.probe("/readyz")
            assert (status, "API server" in body) == (503, True)
            local_cluster.start_apiserver()
        scene.proxy.play()
        wait_until(lambda: own.leads, bool, "it to lead again", TAKEOVER)
    assert loop.failures == []
    scene.change()
    caught_up = scene.until_right()
    note("F-1" if way == "killed" else "F-15", last_write_after_renewal_s=round(last - renewed, 2), lease_s=LEASE)
    note("F-1" if way == "killed" else "F-15", caught_up_s=round(caught_up, 2), failed_requests=len(loop.failures))


def test_a_slow_api_server_ends_no_term_and_gets_one_list_per_kind_at_a_time(scene: ApiStand, start: Start) -> None:
    """A renewal takes up to renew_deadline less retry_period: the next one is sent while it waits for its response."""
    own = start(election=PATIENT | {"name": f"lease-{scene.namespace}"})
    lists = len(scene.proxy.requests(verb="list"))
    scene.proxy.play(
        {"match": {"resource": "leases"}, "action": "delay", "seconds": [2.0, 5.4]},
        {"action": "delay", "seconds": [0.5, 2.5]},
        {"match": {"verb": "watch"}, "action": "gone", "times": 12},
    )
    for _ in range(2):
        scene.change()
        scene.until_right()
    wait_until(lambda: len(scene.proxy.requests(verb="list")), lambda got: got >= lists + 12, "all lists", TAKEOVER)
    scene.until_said("new-" + max(name.split("-")[1] for name in scene.want if name.startswith("new")) + "-a")
    note("F-2", requests=scene.faults("delay"), terms=len(own.events("term.started")))
    assert (own.leads, len(own.events("term.started")), scene.overlapping()) == (True, 1, [])


def test_a_pause_of_a_second_ends_no_term_and_is_reported(scene: ApiStand, start: Start) -> None:
    own = start(election=PATIENT | {"name": f"lease-{scene.namespace}"})
    renewed = len(scene.asked("patch", "leases"))
    own.process.pause()
    try:
        # The gateway's clock continues: seven manual edits take more than a second.
        stopped = scene.writes()
        with damage(scene):
            wait_until(scene.writes, lambda got: got >= stopped + 7, "a second to pass")
    finally:
        own.process.resume()
    wait_until(lambda: len(scene.asked("patch", "leases")), lambda got: got > renewed + 2, "renewals")
    wait_until(lambda: own.metric(LAG), lambda got: got > 1.0, "the stall to be shown")
    note("F-26", shown_s=round(own.metric(LAG), 2), terms=len(own.events("term.started")))
    assert (own.leads, len(own.events("term.started"))) == (True, 1)


@pytest.mark.parametrize(
    "redirection", ["> /dev/full 2>&1", ">&- 2>&-", "> >(true) 2>&1"], ids=["full", "closed", "reader gone"]
)
def test_the_controller_works_without_an_output(scene: ApiStand, redirection: str) -> None:
    own = scene.controller(scene.proxy.kubeconfig, name=f"mute-{secrets.token_hex(2)}")
    own.process.command = ["bash", "-c", f'exec "$@" {redirection}', "bash", *own.process.command]
    with own:
        scene.change()
        scene.until_right()
        assert own.probe("/healthz")[0] == 200


READ = {"verbs": ["get", "list", "watch"]}
RULES: list[Manifest] = [
    {"apiGroups": [""], "resources": ["namespaces", "services", "endpoints", "secrets", "configmaps", "pods"], **READ},
    {"apiGroups": ["discovery.k8s.io", "networking.k8s.io", "gateway.networking.k8s.io"], "resources": ["*"], **READ},
    {"apiGroups": ["", "coordination.k8s.io"], "resources": ["events", "configmaps", "leases"], "verbs": ["*"]},
    {
        "apiGroups": ["apisix.apache.org"],
        "resources": sorted({RESOURCES[kind].plural for kind in KINDS} - {ROUTES}),
        **READ,
    },
    {"apiGroups": ["apisix.apache.org"], "resources": ["*/status"], "verbs": ["patch"]},
]
ROUTE_RULES: list[Manifest] = [{"apiGroups": ["apisix.apache.org"], "resources": [ROUTES], **READ}]


def grant(scene: ApiStand, name: str, rules: list[Manifest]) -> None:
    """Grant the namespace's account `limited` cluster-wide permissions."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": scene.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    scene.api.apply(
        [
            {**rbac, "kind": "ClusterRole", "rules": rules},
            {**rbac, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": role},
        ]
    )


def may_list_routes(scene: ApiStand) -> bool:
    """Return whether the account may list routes; the API server reads roles from a watch, so this may change late."""
    attributes = {"group": "apisix.apache.org", "resource": ROUTES, "verb": "list"}
    spec = {"user": f"system:serviceaccount:{scene.namespace}:limited", "resourceAttributes": attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
    return bool(scene.api.create(review)["status"]["allowed"])


@pytest.fixture
def limited(scene: ApiStand, local_cluster: LocalCluster, tmp_path: Path) -> Iterator[ApiProxy]:
    """A proxy for an account whose permission to read routes is in a separate role."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "limited"}}
    scene.api.apply(account, namespace=scene.namespace)
    names = (f"{scene.namespace}-all", f"{scene.namespace}-routes")
    for name, rules in zip(names, (RULES, ROUTE_RULES), strict=True):
        grant(scene, name, rules)
    token = scene.api.account_token("limited", namespace=scene.namespace)
    with ApiProxy(local_cluster.kubeconfig_for(token, scene.namespace), tmp_path, name="limited") as proxy:
        yield proxy
    for name in names:
        scene.api.delete("ClusterRoleBinding", name)
        scene.api.delete("ClusterRole", name)


def test_a_revoked_permission_deletes_nothing_and_is_reported(scene: ApiStand, start: Start, limited: ApiProxy) -> None:
    own = start(limited.kubeconfig)
    writes, binding = scene.writes(), f"{scene.namespace}-routes"
    scene.api.delete("ClusterRoleBinding", binding)
    wait_until(lambda: may_list_routes(scene), lambda may: not may, "the API server to heed it")
    # The permissions of an open watch are not checked again: it has to be reopened.
    limited.play({"match": {"verb": "watch", "resource": ROUTES}, "action": "end", "times": 1})
    said = "listing apisixroutes.apisix.apache.org is forbidden: grant list, watch"
    wait_until(lambda: own.probe("/readyz"), lambda got: got[0] == 503 and said in got[1], "the right to be named")
    scene.drop(FEW[2])
    scene.pods.create("more", labels={"app": "web"})
    nodes = lambda: [len(each["nodes"]) for each in scene.gateway.records("upstreams").values()]  # noqa: E731
    wait_until(nodes, lambda got: got == [2], "two nodes, though routes cannot be read")
    assert [write for write in scene.gateway.write_log(writes) if write["method"] == "DELETE"] == []
    grant(scene, binding, ROUTE_RULES)
    scene.change()
    note("F-8", wrong_deletes=len(scene.wrong_deletes(writes)), caught_up_s=round(scene.until_right(), 2))
    wait_until(lambda: own.probe("/readyz")[0], lambda got: got == 200, "it to be ready again")
    scene.put(FEW[2])
    scene.until_right()
