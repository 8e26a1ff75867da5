"""The stories on a node, in their order: install, upgrade, failures, changes, rollback, uninstall."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from e2e.cluster.client import KubeApiError, load_manifests, wait_until
from e2e.release import image
from e2e.release.node import policies, settings
from e2e.release.node.installation import CHART, HOST, NAMESPACE, RELEASE, Installation, installation
from e2e.release.node.node import Node
from e2e.release.registry import serve_plainly
from e2e.release.rehearsal import Facts, Rehearsal, Result, Step, run_steps

Story = Callable[[Installation, Rehearsal], Facts]


def run_stories(rehearsal: Rehearsal) -> list[Result]:
    """Start a node, run every story on it, stop it."""
    made = rehearsal.made
    node_folder = Path(made["node folder"])
    images = {
        image.TAG: Path(rehearsal.need("image archive")),
        image.PREVIOUS: Path(rehearsal.need("previous archive")),
        settings.PAUSE: Path(rehearsal.need("pause archive")),
    }
    started = time.monotonic()
    programs = Path(made["node programs"]), Path(made["kind programs"])
    with Node(rehearsal.shell, node_folder, *programs, images) as node, installation(node) as installed:
        boot = Result("node", "the node is ready", "passed", time.monotonic() - started, _versions(node))
        steps = [Step(part, name, partial(story, installed)) for part, name, story in STORIES]
        return [boot, *run_steps(steps, rehearsal, print)]


def _versions(node: Node) -> dict[str, str]:
    with node.cluster.client() as api:
        info = api.get("Node", settings.NODE)["status"]["nodeInfo"]
    return {name: info[name] for name in ("kubeletVersion", "containerRuntimeVersion", "osImage", "kernelVersion")}


def install_previous(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Install the previous release; two replicas become ready and one leads."""
    at.prepare(image.TAG)
    chart = rehearsal.work / "previous" / CHART
    at.helm("install", RELEASE, chart, **at.values(image.PREVIOUS))
    # A record without labels, which the ledger lists, and records of custom resources.
    for example in ("gateway/request-id.yaml", "authentication/basic.yaml", "backends/secrets.yaml"):
        manifests = load_manifests(rehearsal.work / "previous" / "examples" / example)
        at.api.apply([each for each in manifests if each["metadata"].get("namespace", "default") == "default"])
    wait_until(lambda: at.gateway.records("consumers"), bool, "the consumer")
    wait_until(lambda: at.gateway.records("global_rules"), bool, "the global rule")
    return {**_serving(at), "ledger": ", ".join(_ledger(at))}


def _serving(at: Installation) -> Facts:
    names = at.wait_for_two()
    leader = at.wait_for_leader(names)
    at.traffic.until_status(200, HOST)
    security = at.controllers()[0]["spec"]["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"], security
    return {"leader": leader, "replicas": ", ".join(names)}


def upgrade(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Upgrade with the documented commands: no request is lost, and no record is written."""
    chart = rehearsal.checkout / CHART
    before, records, ledger = len(at.writes()), at.gateway.records("routes"), _ledger(at)
    with at.under_traffic() as loop:
        at.apply_crds(chart)
        at.helm("upgrade", RELEASE, chart, "--reset-then-reuse-values", **at.values(image.TAG))
        at.wait_for_leader(at.wait_for_two())
        at.changes_arrive("/upgraded")
    assert set(records) <= set(at.gateway.records("routes")), "records of the previous release are gone"
    assert ledger, "the previous release has no ledger"
    assert ledger == _ledger(at), f"the ledger has changed: {ledger} and {_ledger(at)}"
    return _seen(at, loop.answers, before) | {"ledger": "unchanged"}


def downgrade(at: Installation, _rehearsal: Rehearsal) -> Facts:
    """Roll back to the previous release, with the newer CRDs: no request is lost."""
    before = len(at.writes())
    with at.under_traffic() as loop:
        at.helm("rollback", RELEASE)
        at.wait_for_leader(at.wait_for_two())
        at.changes_arrive("/downgraded")
    return _seen(at, loop.answers, before)


def upgrade_again(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Upgrade once more, after a downgrade."""
    before = len(at.writes())
    with at.under_traffic() as loop:
        at.helm("upgrade", RELEASE, rehearsal.checkout / CHART, "--reset-then-reuse-values", **at.values(image.TAG))
        at.wait_for_leader(at.wait_for_two())
    return _seen(at, loop.answers, before)


def delete_leader(at: Installation, _rehearsal: Rehearsal) -> Facts:
    """Delete the Pod of the leader: the other replica takes over, and a change arrives."""
    old = at.wait_for_leader(at.wait_for_two())
    with at.under_traffic() as loop:
        started = time.monotonic()
        at.api.delete("v1/Pod", old, namespace=NAMESPACE)
        new = at.wait_for_leader([name for name in at.ready() if name != old])
        seconds = time.monotonic() - started
        at.changes_arrive("/deleted-leader")
        at.wait_for_two()
    return {"new leader": f"{new}, after {seconds:.1f} s", "requests": f"{len(loop.answers)}, none lost"}


def evict(at: Installation, _rehearsal: Rehearsal) -> Facts:
    """Evict both Pods: the disruption budget permits one at a time."""
    first, second = at.wait_for_two()
    with at.under_traffic() as loop:
        statuses = _evict(at, first), _evict(at, second)
        assert statuses == (201, 429), f"statuses of two evictions: {statuses}"
        at.wait_for_leader(at.wait_for_two())
    return {"second eviction": "429, because of the disruption budget", "requests": f"{len(loop.answers)}, none lost"}


def _evict(at: Installation, pod: str) -> int:
    meta = {"name": pod, "namespace": NAMESPACE}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    try:
        at.api.request("POST", path, body={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
    except KubeApiError as e:
        return e.status
    return 201


def restart_hung(at: Installation, _rehearsal: Rehearsal) -> Facts:
    """Freeze the process of the leader: the other replica takes over, and the liveness probe restarts the container."""
    hung = at.wait_for_leader(at.wait_for_two())
    with at.under_traffic() as loop:
        started = time.monotonic()
        os.kill(at.pid(at.api.get("v1/Pod", hung, namespace=NAMESPACE)), signal.SIGSTOP)
        at.wait_for_leader([name for name in at.ready() if name != hung])
        taken = time.monotonic() - started
        wait_until(lambda: _restarts(at, hung), bool, f"{hung} to be restarted", 240)
        restarted = time.monotonic() - started
        at.wait_for_two()
    return {"other replica leads": f"after {taken:.0f} s", "container restarted": f"after {restarted:.0f} s",
            "requests": f"{len(loop.answers)}, none lost"}  # fmt: skip


def _restarts(at: Installation, pod: str) -> int:
    return int(at.api.get("v1/Pod", pod, namespace=NAMESPACE)["status"]["containerStatuses"][0]["restartCount"])


def change_values(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Change a value: the Pods are replaced, because their configuration has changed."""
    before = set(at.wait_for_two())
    with at.under_traffic() as loop:
        values = {"config.logLevel": "debug"}
        at.helm("upgrade", RELEASE, rehearsal.checkout / CHART, "--reset-then-reuse-values", **values)
        after = set(at.wait_for_two())
        at.wait_for_leader(sorted(after))
    assert not before & after, f"Pods with the old value: {before & after}"
    return {"requests": f"{len(loop.answers)}, none lost"}


def fail_to_upgrade(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Upgrade to an image that does not exist: the old Pods go on, and a rollback restores the release."""
    before = set(at.wait_for_two())
    with at.under_traffic() as loop:
        words = ("upgrade", RELEASE, rehearsal.checkout / CHART, "--reset-then-reuse-values", "--namespace", NAMESPACE)
        values = "deployment.image.tag=missing,deployment.image.digest=,deployment.image.pullPolicy=Never"
        at.node.helm(*words, "--set", values)
        wait_until(lambda: len(at.controllers()), lambda n: n == 3, "a third Pod that cannot start")
        at.changes_arrive("/during-a-failed-upgrade")
        at.helm("rollback", RELEASE)
        after = set(at.wait_for_two())
    assert before == after, f"Pods were replaced: {before} and {after}"
    return {"requests": f"{len(loop.answers)}, none lost", "Pods": "the same before and after"}


def install_by_digest(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Upgrade to the published chart and the published image, which the node pulls by digest."""
    chart, published = Path(rehearsal.need("published chart")), rehearsal.need("attested image")
    repository, _, digest = published.partition("@")
    with serve_plainly(rehearsal, settings.REGISTRY):
        values = {"deployment.image.repository": repository, "deployment.image.digest": digest}
        at.helm("upgrade", RELEASE, chart, "--reset-then-reuse-values", **values)
        at.wait_for_leader(at.wait_for_two())
    ids = {pod["status"]["containerStatuses"][0]["imageID"] for pod in at.controllers()}
    assert ids == {published}, ids
    return {"image": published}


def uninstall(at: Installation, _rehearsal: Rehearsal) -> Facts:
    """Uninstall: the gateway serves on; only what the documentation names is left."""
    with at.under_traffic() as loop:
        at.helm("uninstall", RELEASE)
        wait_until(lambda: at.api.objects("v1/Pod", namespace=NAMESPACE), lambda pods: pods == [], "no Pods", 90)
    listed = at.node.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    kinds = ",".join(kind for kind in listed if not kind.startswith(("events", "componentstatuses")))
    labelled = at.node.kubectl("get", kinds, "-A", "-l", "app.kubernetes.io/instance=" + RELEASE, "-o", "name")
    assert labelled == "", f"left after helm uninstall: {labelled}"
    rest = at.node.kubectl("get", "leases,configmaps,secrets", "-n", NAMESPACE, "-o", "name").split()
    ours = [name for name in rest if name not in ("configmap/kube-root-ca.crt", "secret/admin")]
    return {"requests": f"{len(loop.answers)}, none lost", "left in the namespace": ", ".join(ours) or "nothing"}


def _seen(at: Installation, answers: list[Any], before: int) -> dict[str, str]:
    written = [f"{line['method']} {line['path'].removeprefix('/apisix/admin')}" for line in at.writes()[before:]]
    return {"requests": f"{len(answers)}, none lost", "writes": f"{len(written)}: {', '.join(written[:6])}"}


def _ledger(at: Installation) -> dict[str, Any]:
    maps = at.api.objects("ConfigMap", namespace=NAMESPACE)
    return {each["metadata"]["name"]: each.get("data") for each in maps if "ledger" in each["metadata"]["name"]}


STORIES: tuple[tuple[str, str, Story], ...] = (
    ("upgrade", "the previous release is installed: two replicas, one leads, a request is served", install_previous),
    ("upgrade", "an upgrade under traffic loses no request", upgrade),
    ("upgrade", "a downgrade under traffic loses no request", downgrade),
    ("upgrade", "a second upgrade after the downgrade loses no request", upgrade_again),
    ("node", "the published chart installs the published image by digest", install_by_digest),
    ("node", "the Pod of the leader is deleted", delete_leader),
    ("node", "both Pods are evicted, one at a time", evict),
    ("node", "a changed value replaces the Pods", change_values),
    ("node", "a failed upgrade leaves the old Pods, a rollback restores the release", fail_to_upgrade),
    ("node", "the NetworkPolicy lets through what the controller needs, and nothing else", policies.enforce),
    ("node", "the liveness probe restarts a hung process", restart_hung),
    ("node", "an uninstall leaves nothing but what is documented", uninstall),
)
