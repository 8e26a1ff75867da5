"""Runs the official suite against the controller and a gateway, inside a network namespace (`e2e.netns`).

Starts an API server, the CRDs, the stand-in for kubelets and the controller. Every Gateway gets an address of its own
from a pool, on which the gateway listens with all ports that the suite uses.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.client import KubeClient
from e2e.cluster.local import LocalCluster
from e2e.conformance.kubelet import Kubelet
from e2e.controller import Controller

POOL = "10.246.0.0/24"
GATEWAY_CLASS = "apisix"
CONTROLLER = "apisix.apache.org/apisix-ingress-controller"


@dataclass(frozen=True)
class AdminApi:
    """The gateway's Admin API."""

    admin_url: str
    admin_key: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.conformance.run", description=__doc__)
    parser.add_argument("--suite", type=Path, required=True, help="test binary of the suite")
    parser.add_argument("--echo", type=Path, required=True, help="the suite's echo server")
    parser.add_argument("--crds", type=Path, required=True, help="folder with the CRDs")
    parser.add_argument("--admin-url", default="http://127.0.0.1:9180/apisix/admin")
    parser.add_argument("--admin-key", required=True)
    parser.add_argument("--out", type=Path, default=Path("build/conformance"))
    parser.add_argument("suite_arguments", nargs="*", metavar="-- ARGUMENTS", help="of the suite")
    arguments = parser.parse_args(argv)
    with ExitStack() as stack:
        return _run(arguments, stack)


def _run(arguments: argparse.Namespace, stack: ExitStack) -> int:
    out: Path = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    subprocess.run(["ip", "route", "add", "local", POOL, "dev", "lo"], check=True)
    cluster = stack.enter_context(LocalCluster())
    api = stack.enter_context(cluster.client())
    for path in sorted(arguments.crds.glob("gateway*.yaml")):
        api.apply(path)
    root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
    kubelet = Kubelet(stack.enter_context(cluster.client()), arguments.echo, root)
    kubelet.start()
    stack.callback(kubelet.stop)
    gateway = AdminApi(arguments.admin_url, arguments.admin_key)
    settings = {"address_pool": [POOL], "loopback": "http://127.0.0.1:80"}
    controller = Controller(
        out / "controller",
        kubeconfig=cluster.kubeconfig,
        gateways={"default": gateway},
        gateway_api=settings,
    )
    stack.enter_context(controller)
    _add_class(api)
    command = [
        str(arguments.suite),
        "-test.v",
        "-test.run=^TestConformance$",
        "-test.timeout=40m",
        f"-kubeconfig={cluster.kubeconfig}",
        f"-gateway-class={GATEWAY_CLASS}",
        "-organization=apisix-ingress",
        "-project=apisix-ingress",
        "-url=https://github.com/apache/apisix-ingress-controller",
        "-version=dev",
        "-contact=maintainers",
        f"-report-output={out / 'report.yaml'}",
        "-usable-address=10.246.0.200",
        "-unusable-address=192.0.2.1",
        "-cleanup-base-resources=false",
        *arguments.suite_arguments,
    ]
    with (out / "suite.log").open("wb") as log:
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    print(f"suite ended with {status}; see {out}", file=sys.stderr)
    return status


def _add_class(api: KubeClient) -> None:
    manifest = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": GATEWAY_CLASS},
        "spec": {"controllerName": CONTROLLER},
    }
    api.apply(manifest)


if __name__ == "__main__":
    sys.exit(main())
