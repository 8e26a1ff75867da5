"""The part of the rehearsal that runs on a node: prepares images, enters the namespaces, collects the results."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from e2e.cluster.binaries import locate, locate_helm
from e2e.release import image
from e2e.release.containers import Containers
from e2e.release.node import settings
from e2e.release.node.programs import kind_programs, node_programs, pause_image
from e2e.release.rehearsal import Facts, Rehearsal, Result, Step
from e2e.release.shell import NAMESPACES, CommandError


def build_programs(rehearsal: Rehearsal) -> Facts:
    """Build kubelet and its neighbours, or take them from the cache."""
    locate()
    locate_helm()
    folder = node_programs(os.environ)
    rehearsal.made["node programs"] = str(folder)
    rehearsal.made["kind programs"] = str(kind_programs(os.environ))
    return {"kubelet": rehearsal.shell.run(folder / "kubelet", "--version")}


def prepare_images(rehearsal: Rehearsal) -> Facts:
    """Write every image that the node needs into a file."""
    containers = Containers(rehearsal)
    rehearsal.need("image archive")
    pause = pause_image(rehearsal.shell, rehearsal.work / "pause")
    containers.build(pause, settings.PAUSE, "--file", str(pause / "Containerfile"))
    containers.save(settings.PAUSE, rehearsal.work / "pause.tar")
    rehearsal.made["pause archive"] = str(rehearsal.work / "pause.tar")
    return {"pause": "compiled from the Kubernetes module"}


def build_previous(rehearsal: Rehearsal) -> Facts:
    """Build the image of the release that users upgrade from."""
    previous = rehearsal.work / "previous"
    built = image.build_image(rehearsal, previous, image.PREVIOUS)
    archive = Containers(rehearsal).save(image.PREVIOUS, rehearsal.work / "previous.tar")
    rehearsal.made["previous archive"] = str(archive)
    return {"image": built, "commit": rehearsal.previous}


def run_on_node(rehearsal: Rehearsal, parts: Collection[str]) -> list[Result]:
    """Run the stories in namespaces of their own and return their results, if the part `node` is among the parts."""
    if "node" not in parts:
        return []
    folder = Path(tempfile.mkdtemp(prefix="node-", dir="/tmp"))
    rehearsal.made["node folder"] = str(folder)
    hand_over = rehearsal.work / "node.json"
    hand_over.write_text(json.dumps(asdict(rehearsal) | {"shell": str(rehearsal.shell.log)}, default=str))
    results = rehearsal.work / "node-results.json"
    results.unlink(missing_ok=True)
    command = (*NAMESPACES, sys.executable, "-m", "e2e.release.node", str(hand_over), str(results))
    try:
        rehearsal.shell.run(*command, cwd=Path(__file__).parents[3], timeout=1500)
    except CommandError as e:
        if not results.exists():
            return [Result("node", "the node runs", "failed", 0.0, {}, str(e))]
    finally:
        shutil.rmtree(folder)
        remove_cgroups()
    return [Result(**each) for each in json.loads(results.read_text())]


def remove_cgroups() -> None:
    """Remove the cgroups of the node; its processes have ended with its PID namespace."""
    for root in settings.CGROUPS.glob(f"*/{settings.CGROUP}"):
        for folder in sorted(root.rglob("*/"), reverse=True):
            folder.rmdir()
        root.rmdir()


STEPS = (
    Step("node", "kubelet, kube-proxy and kube-scheduler are built from the Kubernetes module", build_programs),
    Step("node", "the image of the previous release is built", build_previous),
    Step("node", "images are written to files", prepare_images),
)
