"""The stories on the cluster of e2e/kind, with the real kind in podman, in namespaces of their own.

The node image is built by `kind_image`, so nothing comes from Docker Hub. Users with Docker run the same script.
"""

import os
import resource
import shlex
from collections.abc import Mapping
from pathlib import Path

from e2e.charts.kinds import ROOT
from e2e.release import image, kind_image, tools
from e2e.release.rehearsal import Facts, Rehearsal, Step
from e2e.release.shell import NAMESPACES

STORIES = ("e2e/stories/changes/test_lifecycle.py", "e2e/stories/install/test_chart_install.py")
NAME = "apisix-ingress-rehearsal"
# Without the limits, those of podman are used, which may exceed the hard limits of this process.
CONTAINERS = """\
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
lock_type = "file"
tmp_dir = "{work}/kind/tmp"
volume_path = "{work}/kind/volumes"
static_dir = "{work}/kind/static"
[network]
network_config_dir = "{work}/kind/networks"
"""
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{work}/storage"\nrunroot = "{work}/run"\n'
PODS = """\
node() { podman exec "$NAME-control-plane" kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"; }
trap 'kind delete cluster --name "$NAME" --kubeconfig "$KUBECONFIG" >&2' EXIT
kind create cluster --name "$NAME" --image "$NODE_IMAGE" --kubeconfig "$KUBECONFIG" --wait 240s >&2
node -n kube-system wait pod --all --for=condition=Ready --timeout=240s >&2
kind load image-archive "$ARCHIVE" --name "$NAME" >&2
node run controller --image="$IMAGE" --image-pull-policy=Never --restart=Never -- version >&2
node wait pod/controller '--for=jsonpath={.status.phase}=Succeeded' --timeout=120s >&2
node get nodes --no-headers
node -n kube-system get pods -o 'jsonpath={.items[*].metadata.name}'
echo
node logs controller
"""


def run_pods(rehearsal: Rehearsal) -> Facts:
    """Create a cluster with the default CNI; the Pods of the control plane and one of the released image run."""
    variables = {
        "NAME": NAME,
        "KUBECONFIG": str(rehearsal.work / "kind" / "kubeconfig"),
        "ARCHIVE": rehearsal.need("image archive"),
        "IMAGE": image.TAG,
    }
    node, pods, version = _inside(rehearsal, PODS, variables).splitlines()
    return {"node": node, "Pods": pods, "version of the controller": version}


def run_stories(rehearsal: Rehearsal) -> Facts:
    """Run some of the stories, with the script that `make test-e2e CLUSTER=kind` runs."""
    out = _inside(rehearsal, shlex.join((str(ROOT / "e2e/kind/kind.sh"), "test", *STORIES, "-q")), {})
    return {"stories": ", ".join(STORIES), "pytest": out.splitlines()[-1]}


def _inside(rehearsal: Rehearsal, script: str, variables: Mapping[str, str]) -> str:
    """Run a script in a network namespace: kind's networks and the local routes are not those of the machine."""
    settings = rehearsal.work / "kind"
    files, processes = (resource.getrlimit(each)[1] for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    conf = CONTAINERS.format(work=rehearsal.work, files=files, processes=processes)
    (settings / "containers.conf").write_text(conf)
    (settings / "storage.conf").write_text(STORAGE.format(work=rehearsal.work))
    kind = tools.locate_tool(rehearsal, tools.KIND)
    environment = {
        "CONTAINERS_CONF": str(settings / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(settings / "storage.conf"),
        "KIND_EXPERIMENTAL_PROVIDER": "podman",
        "NODE_IMAGE": rehearsal.need("node image"),
        "PATH": f"{kind.parent}:{os.environ['PATH']}",
        **variables,
    }
    # kind mounts the folder of kernel modules, which a machine without modules may not have.
    Path("/lib/modules").mkdir(exist_ok=True)
    words = ("bash", "-euo", "pipefail", "-c", f"ip link set lo up\n{script}")
    return rehearsal.shell.run(*NAMESPACES, *words, cwd=ROOT, env=environment, timeout=1200)


STEPS = (
    Step("kind", "a node image is built from Debian packages and Go modules", kind_image.build),
    Step("kind", "kind creates a cluster that runs Pods", run_pods),
    Step("kind", "stories pass on the cluster of e2e/kind", run_stories),
)
