"""Commands that ask a controller: the leader answers, a follower names it, and kubectl reports what it cannot reach."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from e2e.cluster.binaries import locate
from e2e.cluster.client import wait_until
from e2e.story import Stage, route
from tests.flow.commandline import Cli


def test_a_follower_names_the_leader_and_the_leader_answers(stage: Stage, tmp_path: Path) -> None:
    stage.serve()
    stage.apply(route(stage.host))
    leader = stage.start(name="leader")
    wait_until(lambda: leader.leads, bool, "the first replica to lead")
    stage.traffic.until_status(200, stage.host)
    follower = stage.start(name="follower")
    wait_until(
        lambda: json.loads(follower.probe("/status/api/overview")[1])["replica"],
        lambda replica: bool(replica["leader"]) and replica["ready"],
        "the follower to know the leader",
    )
    cli = Cli(tmp_path)
    for command in ("status", "hosts", "changes", "tree", f"explain http://{stage.host}/"):
        got = asyncio.run(cli.beside(*command.split(), "--url", follower.url))
        assert (got.returncode, got.stdout) == (2, "")
        assert "not the leader, so it does not know the gateways: ask Pod leader, which leads" in got.stderr
    code, hosts = asyncio.run(cli.json("hosts", "--url", leader.url))
    (found,) = hosts["hosts"]
    assert (code, found["host"], found["state"], found["since"]) == (0, stage.host, "live", "")
    assert [each["nodes"] for each in found["backends"]] == [1]
    _, changes = asyncio.run(cli.json("changes", "--url", leader.url))
    assert {each["change"] for each in changes["changes"]} == {"created"}


def test_errors_of_the_real_kubectl_are_reported(
    stage: Stage, tmp_path: Path, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = locate().kubectl
    assert kubectl is not None
    monkeypatch.setenv("PATH", f"{kubectl.parent}:{os.environ['PATH']}")
    controller = stage.start(name="leader")
    wait_until(lambda: controller.leads, bool, "it to lead")
    election = ("--config", str(controller.config), "--kubeconfig", str(kubeconfig))
    got = asyncio.run(Cli(tmp_path).beside("dashboard", "--no-open", "--controller-namespace", "default", *election))
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.startswith("error: kubectl port-forward to Pod default/leader: ")
    assert 'pods "leader" not found' in got.stderr
