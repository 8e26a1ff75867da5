"""Runs the official suite against the controller and an APISIX, inside a network namespace (`e2e.netns`).

Starts an API server with the CRDs, the stand-in for kubelets, the gateway by a command of the user, and the controller.
Every Gateway gets an address of its own from a pool; the gateway has to listen on every address, with the ports in
`PORTS`.
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
from e2e.conformance.programs import crds, located
from e2e.controller import Controller
from translation.gateway.entry.gateway_class import FEATURES

PORTS = {
    "http": (80, 8080, 8090),
    "https": (443, 6443, 7443, 8443),
    "tcp": (9300, 9301, 9302, 9310, 9311, 9312, 9313, 9320, 9321),
    "udp": (5300, 5301, 5302, 5310, 5311, 5312),
}
"""Ports on which the gateway has to listen."""

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
    parser.add_argument("--start", required=True, help="command that starts the gateway, and returns when it is ready")
    parser.add_argument("--stop", default="true", help="command that stops it")
    parser.add_argument("--admin-url", default="http://127.0.0.1:9180/apisix/admin")
    parser.add_argument("--admin-key", required=True)
    parser.add_argument("--out", type=Path, default=Path("build/conformance"))
    parser.add_argument("suite_arguments", nargs="*", metavar="-- ARGUMENTS", help="of the suite")
    arguments = parser.parse_args(argv)
    with ExitStack() as stack:
        subprocess.run(arguments.start, shell=True, check=True)
        stack.callback(subprocess.run, arguments.stop, shell=True, check=False)
        return _run(arguments, stack)


def _run(arguments: argparse.Namespace, stack: ExitStack) -> int:
    out: Path = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    programs = located()
    subprocess.run(["ip", "route", "add", "local", POOL, "dev", "lo"], check=True)
    cluster = stack.enter_context(LocalCluster())
    api = stack.enter_context(cluster.client())
    for path in sorted(crds().glob("gateway*.yaml")):
        api.apply(path)
    root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
    kubelet = Kubelet(stack.enter_context(cluster.client()), programs / "echo-basic", root)
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
        str(programs / "suite"),
        "-test.v",
        "-conformance-profiles=GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TCP,GATEWAY-UDP",
        f"-supported-features={','.join(FEATURES)}",
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
