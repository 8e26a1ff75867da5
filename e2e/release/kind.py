"""The cluster of e2e/kind with the real kind: Docker if it responds, otherwise podman. It is removed again."""

from collections.abc import Mapping

from e2e.charts.kinds import ROOT
from e2e.release import tools
from e2e.release.rehearsal import Facts, NotRunError, Rehearsal, Step
from e2e.release.shell import CommandError

NAME = "apisix-ingress-rehearsal"


def create(rehearsal: Rehearsal) -> Facts:
    """Create the cluster, look at its node, and delete it.

    Raises:
        NotRunError: if kind cannot create it, with kind's error: its node image comes from Docker Hub only.
    """
    kind = tools.locate_tool(rehearsal, tools.KIND)
    kubeconfig = ("--name", NAME, "--kubeconfig", str(rehearsal.work / "kind.kubeconfig"))
    env = _provider(rehearsal)
    try:
        config = ("--config", ROOT / "e2e/kind/cluster.yaml")
        rehearsal.shell.run(kind, "create", "cluster", *kubeconfig, *config, env=env, timeout=600)
    except CommandError as e:
        raise NotRunError(f"kind {tools.KIND.version} cannot create its cluster here: {e}") from e
    try:
        nodes = rehearsal.shell.run(kind, "get", "nodes", "--name", NAME, env=env)
    finally:
        rehearsal.shell.run(kind, "delete", "cluster", *kubeconfig, env=env)
    return {"nodes": nodes, "the suite": "not run here: make test-e2e CLUSTER=kind"}


def _provider(rehearsal: Rehearsal) -> Mapping[str, str]:
    try:
        rehearsal.shell.run("docker", "info", "--format", "{{.ServerVersion}}")
    except CommandError:
        return {"KIND_EXPERIMENTAL_PROVIDER": "podman"}
    return {}


STEPS = (Step("kind", "kind creates the cluster of e2e/kind/cluster.yaml", create),)
