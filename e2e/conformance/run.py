"""Runs the official suite against the controller and a gateway, inside a network namespace (`e2e.netns`).

Starts an API server with the CRDs, the stand-in for kubelets, the gateway and the controller. The gateway is the
development gateway, for which only the features that it simulates are claimed, or any APISIX, started by a command.
Every Gateway gets its own address from a pool; the gateway has to listen on every address, with the ports in
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
from e2e.devgateway.process import ADMIN_KEY
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


ADMIN = "127.0.0.1:9180"
"""Address of the development gateway's Admin API."""

PROFILES = ("GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TCP", "GATEWAY-UDP")

NOT_IMITATED = frozenset(
    {
        "GRPCRoute",
        "GRPCRouteNamedRouteRule",
        "GatewayFrontendClientCertificateValidation",
        "GatewayFrontendClientCertificateValidationInsecureFallback",
        "GatewayHTTPSListenerDetectMisdirectedRequests",
        "HTTPRouteBackendProtocolH2C",
        "HTTPRouteBackendRequestHeaderModification",
        "HTTPRouteCORS",
        "HTTPRouteRequestMirror",
        "HTTPRouteRequestMultipleMirrors",
        "HTTPRouteRequestPercentageMirror",
        "TCPRoute",
        "UDPRoute",
    }
)
"""Features that the development gateway does not simulate: HTTP/2, mirrors, streams and some plugins."""


@dataclass(frozen=True)
class AdminApi:
    """The gateway's Admin API."""

    admin_url: str
    admin_key: str
    mode: str = "apisix"


@dataclass(frozen=True)
class Claim:
    """The profiles that are run, and the features that are claimed."""

    profiles: tuple[str, ...]
    features: tuple[str, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.conformance.run", description=__doc__)
    parser.add_argument("--gateway", default="", help="URL of the Admin API; none: the development gateway")
    parser.add_argument("--admin-key", default=ADMIN_KEY)
    parser.add_argument("--start", default="", help="command that starts the gateway, and returns when it is ready")
    parser.add_argument("--stop", default="", help="command that stops it")
    parser.add_argument("--out", type=Path, default=Path("build/conformance"))
    parser.add_argument("suite_arguments", nargs="*", metavar="-- ARGUMENTS", help="of the suite")
    arguments = parser.parse_args(argv)
    out: Path = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with ExitStack() as stack:
        if not arguments.gateway:
            _start_development_gateway(stack, arguments.admin_key, out / "gateway.log")
            features = tuple(each for each in FEATURES if each not in NOT_IMITATED)
            gateway = AdminApi(f"http://{ADMIN}/apisix/admin", arguments.admin_key)
            return _run(gateway, Claim(PROFILES[:1], features), out, arguments.suite_arguments, stack)
        if arguments.start:
            subprocess.run(arguments.start, shell=True, check=True)
        if arguments.stop:
            stack.callback(subprocess.run, arguments.stop, shell=True, check=False)
        gateway = AdminApi(arguments.gateway, arguments.admin_key)
        return _run(gateway, Claim(PROFILES, FEATURES), out, arguments.suite_arguments, stack)


def _start_development_gateway(stack: ExitStack, key: str, log: Path) -> None:
    """Start the development gateway on all ports, and return when it is ready."""
    proxy, tls = (",".join(f"0.0.0.0:{port}" for port in PORTS[kind]) for kind in ("http", "https"))
    addresses = ["--admin", ADMIN, "--proxy", proxy, "--tls", tls, "--admin-key", key]
    process = subprocess.Popen(
        [sys.executable, "-m", "e2e.devgateway", *addresses],
        stdout=subprocess.PIPE,
        stderr=stack.enter_context(log.open("wb")),
        text=True,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    if not any(line.startswith("admin ready") for line in process.stdout):
        raise RuntimeError(f"the development gateway did not start; see {log}")


def _run(gateway: AdminApi, claim: Claim, out: Path, suite_arguments: Sequence[str], stack: ExitStack) -> int:
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
        f"-conformance-profiles={','.join(claim.profiles)}",
        f"-supported-features={','.join(claim.features)}",
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
        *suite_arguments,
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
