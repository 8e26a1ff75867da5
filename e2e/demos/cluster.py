"""`make demo-cluster`: the demonstration against a real API server, with Pods, Services and kubectl commands to try.

Started outside, it chooses ports and restarts itself in a network namespace, where Pod addresses are reachable;
the API server, the gateway and the status page can be reached from outside. The gateway is a stand-in for
APISIX; `e2e.devgateway` describes its limits.
"""

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import crds
from e2e.cluster.binaries import locate
from e2e.cluster.client import KubeClient
from e2e.cluster.echo import EchoServers
from e2e.cluster.gobuild import BinariesError
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller
from e2e.demos.local import (
    EXAMPLES,
    INGRESS_CLASS,
    STAND_IN,
    Demo,
    hold,
    interruptible,
    readable_log,
    say,
    start_controller,
    start_gateway,
    with_weights,
)
from e2e.devgateway.ports import free_port
from e2e.devgateway.process import DevGateway
from e2e.workload import Deployment, PodFactory

NAMESPACE = "default"
BACKENDS = {"shop-v1": 2, "shop-v2": 1, "blog": 1}
"""Deployment and Service → pods."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.demos.cluster", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--api-port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--proxy-port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--admin-port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--status-port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if not arguments.api_port:
        _start_inside(keep=arguments.keep)
    say(f"{STAND_IN}\n")
    with interruptible() as stack:
        ports = {"proxy_port": arguments.proxy_port, "admin_port": arguments.admin_port}
        gateway = DevGateway(admin_key=secrets.token_hex(16), **ports)
        demo = ClusterDemo(stack, arguments.api_port, gateway, arguments.status_port)
        demo.show()
        if arguments.keep:
            say("It keeps running until Ctrl-C. In another shell:\n")
            demo.tell()
            hold()
        else:
            say("KEEP=1 make demo-cluster keeps it running and prints kubectl commands to try.")
        say("stopping ...")
    return 0


def _start_inside(*, keep: bool) -> None:
    """Become this program in the namespace, with ports that are free outside."""
    try:
        locate()
    except BinariesError as error:
        sys.exit(f"e2e.demos.cluster: {error}")
    ports = {name: str(free_port()) for name in ("api", "proxy", "admin", "status")}
    published = [word for port in ports.values() for word in ("--publish", port)]
    chosen = [word for name, port in ports.items() for word in (f"--{name}-port", port)]
    inside = [sys.executable, "-m", "e2e.demos.cluster", *chosen]
    command = [sys.executable, "-m", "e2e.netns", *published, "--", *inside, *(["--keep"] if keep else [])]
    sys.stdout.flush()
    # A process that a script starts with & ignores SIGINT, and its children would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.executable, command)


class ClusterDemo:
    """The running parts of the demonstration, and its output. `stack` stops everything."""

    def __init__(self, stack: ExitStack, api_port: int, gateway: DevGateway, status_port: int) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apisix-ingress-demo-")))
        say("starting etcd, kube-apiserver and kube-controller-manager ...")
        self._cluster = stack.enter_context(LocalCluster(api_port=api_port))
        self._api = stack.enter_context(self._cluster.client())
        self._api.apply(crds.manifests())
        self._api.apply(INGRESS_CLASS)
        say("starting a gateway with its etcd, and pods behind three Services ...")
        self._gateway = start_gateway(stack, gateway)
        servers = stack.enter_context(EchoServers())
        pods = stack.enter_context(PodFactory(self._api, NAMESPACE, servers))
        for name, replicas in BACKENDS.items():
            Deployment(pods, name, replicas=replicas)
            pods.service(name, {"app": name})
        say("starting the controller ...")
        gateways = {"default": self._gateway}
        readable_log()
        kubeconfig = self._cluster.kubeconfig
        self._controller = Controller(folder, kubeconfig=kubeconfig, gateways=gateways, port=status_port)
        start_controller(stack, self._controller)
        say(f"its status page: {self._controller.url}/status")

    def show(self) -> None:
        """Apply the objects of examples/quickstart, then show a response and the conditions of the objects."""
        say("applying route.yaml, upstream.yaml and ingress.yaml of examples/quickstart ...")
        for name in ("route.yaml", "upstream.yaml", "ingress.yaml"):
            self._api.apply(EXAMPLES / name, namespace=NAMESPACE)
        Demo(self._gateway.proxy_url, self._edit_weights).show("an apply of route.yaml with other weights")
        self._show_status(self._api)

    def tell(self) -> None:
        """Print commands to try."""
        kubectl = self._kubectl()
        say(f"  export KUBECONFIG={self._cluster.kubeconfig}")
        say(f"  {kubectl} get apisixroutes,apisixupstreams,ingresses,ingressclasses,endpointslices,pods")
        say(f"  {kubectl} describe apisixroute shop             # its condition, and Events if something is wrong")
        say(f"  {kubectl} edit apisixroute shop                 # another weight, path or host: live at once")
        say(f"  {kubectl} delete pod shop-v1-1 --grace-period=0 --force    # leaves the gateway at once")
        say(f"  {kubectl} delete service blog                   # 503; the route stays. Back again:")
        say(f"  {kubectl} expose pod blog-1 --name=blog --port=80")
        say(f"  curl -i -H 'Host: shop.example.org' {self._gateway.proxy_url}/hello\n")
        say(f"  status page {self._controller.url}/status    # what is live, what is wrong and why; follows edits\n")
        ask = Path(sys.executable).with_name("apisix-ingress")
        say(f"  {ask} status --config {self._controller.config}")
        say("  and so diff, explain shop.example.org/hello, doctor, tree, wait ApisixRoute default/shop\n")
        say(f"  tail -f {self._controller.process.log}    # what the controller does\n")

    def _edit_weights(self, first: int, second: int) -> None:
        text = with_weights((EXAMPLES / "route.yaml").read_text(), first, second)
        self._api.apply(text, namespace=NAMESPACE)

    def _show_status(self, api: KubeClient) -> None:
        say("The status of the objects:")
        if locate().kubectl is not None:
            say(self._cluster.kubectl("get", "apisixroutes,apisixupstreams,ingresses"))
            return
        for kind, name in (("ApisixRoute", "shop"), ("ApisixUpstream", "shop-v1")):
            status = api.get(kind, name, namespace=NAMESPACE).get("status", {})
            say(f"  {kind} {name}: {status.get('conditions')}")

    def _kubectl(self) -> str:
        """Return the command for kubectl: its name, or the path of the one that was built."""
        return "kubectl" if shutil.which("kubectl") else str(locate().kubectl or "kubectl")


if __name__ == "__main__":
    sys.exit(main())
