"""`make demo`: gateway, controller and backends on this machine, requests and their responses, a weight edited live.

No cluster is needed: the controller takes its objects from a copy of `examples/quickstart`. The gateway is a stand-in
for APISIX; `e2e.devgateway` describes its limits.
"""

import argparse
import collections
import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import yaml

from e2e.cluster.client import wait_until
from e2e.cluster.echo import EchoServers
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway

EXAMPLES = Path(__file__).parents[2] / "examples" / "quickstart"
PORT = 8080
SAMPLE = 200
CURL = r"curl -s -o /dev/null -w '%{http_code} %header{x-pod}\n'"
"""Prints the status and which pod answered (curl 7.84 or newer)."""
INGRESS_CLASS = """\
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: apisix}
spec: {controller: apisix.apache.org/apisix-ingress-controller}
"""
"""The class of the Ingress, which the chart creates in clusters."""
STAND_IN = (
    "The controller is the real one. The gateway is a small simulator of APISIX (e2e/devgateway)\n"
    "that is tested against recorded responses of APISIX."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.demos.local", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    arguments = parser.parse_args(argv)
    say(f"{STAND_IN}\n")
    with interruptible() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apisix-ingress-demo-")))
        manifests = folder / "manifests"
        shutil.copytree(EXAMPLES, manifests)
        (manifests / "class.yaml").write_text(INGRESS_CLASS)
        stack.enter_context(_backends(manifests))
        say("starting a gateway with its etcd ...")
        gateway = start_gateway(stack, DevGateway(admin_key=secrets.token_hex(16)))
        say("starting the controller on a copy of examples/quickstart ...")
        readable_log()
        controller = Controller(folder, gateways={"default": gateway}, manifests=manifests)
        start_controller(stack, controller)
        say(f"its status page: {controller.url}/status")
        Demo(gateway.proxy_url, partial(_edit_weights, manifests / "route.yaml")).show("an edit of route.yaml")
        if arguments.keep:
            _tell(gateway, manifests, controller)
            hold()
        else:
            say("KEEP=1 make demo keeps it running, with files to edit.")
        say("stopping ...")
    return 0


@contextlib.contextmanager
def interruptible() -> Iterator[ExitStack]:
    """Yield a stack for everything that must be stopped; Ctrl-C and SIGTERM end the block and unwind the stack."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def ignore() -> None:
        # make and the terminal may both send a signal, possibly late: it must not interrupt the shutdown.
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(_number: int, _frame: object) -> None:
        ignore()
        raise KeyboardInterrupt

    # SIGINT too: a process that a script starts with & ignores it.
    for number in numbers:
        signal.signal(number, interrupt)
    with contextlib.suppress(KeyboardInterrupt), ExitStack() as stack:
        try:
            yield stack
        finally:
            ignore()


def start_gateway(stack: ExitStack, gateway: DevGateway) -> DevGateway:
    """Start and return it; an interrupt during its start stops it as well."""
    stack.push(gateway)
    gateway.start()
    return gateway


def start_controller(stack: ExitStack, controller: Controller) -> None:
    """Start it and return once it is ready; an interrupt during its start stops it as well."""
    stack.push(controller)
    controller.start()


def readable_log() -> None:
    """Set the console log format for controllers started from now on: the environment overrides their file."""
    os.environ["APISIX_INGRESS_LOG__FORMAT"] = "console"


def hold() -> None:
    """Wait for Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


def say(text: str = "") -> None:
    """Print a line without buffering."""
    print(text, flush=True)


def _backends(manifests: Path) -> EchoServers:
    """Start a server for every endpoint that the manifests name."""
    servers = EchoServers()
    for document in yaml.safe_load_all((manifests / "backends.yaml").read_text()):
        if document["kind"] == "EndpointSlice":
            service = document["metadata"]["labels"]["kubernetes.io/service-name"]
            for number, endpoint in enumerate(document["endpoints"], 1):
                servers.serve(f"{service}-{number}", endpoint["addresses"], [PORT])
    return servers


class Demo:
    """The output once everything runs: requests to the hosts of `examples/quickstart`.

    Args:
        proxy_url: The gateway's URL for HTTP.
        edit_weights: Sets the weights of both versions of the shop.
    """

    def __init__(self, proxy_url: str, edit_weights: Callable[[int, int], None]) -> None:
        self._proxy_url = proxy_url
        self._edit_weights = edit_weights

    def show(self, by: str) -> None:
        """Send requests, edit a weight (`by` describes how), send requests again."""
        wait_until(lambda: self._pod("shop.example.org"), lambda pod: pod.startswith("shop-"), "the route to be live")
        wait_until(lambda: self._pod("blog.example.org"), lambda pod: pod.startswith("blog-"), "the Ingress to be live")
        say("\nTwo requests that objects of examples/quickstart match, and one that none matches:")
        self._one("ApisixRoute, header decides", "shop.example.org", {"X-Canary": "always"})
        self._one("Ingress", "blog.example.org", {})
        self._one("unknown host", "unknown.example.org", {})
        say(f"\nThe ApisixRoute splits 90:10, {SAMPLE} requests:")
        self._split()
        say(f"\nNow 50:50, by {by}:")
        before = time.monotonic()
        self._edit_weights(50, 50)
        wait_until(self._even, bool, "the new weights to be live")
        say(f"  live {time.monotonic() - before:.1f} s after the edit")
        self._split()
        say()

    def _one(self, what: str, host: str, headers: Mapping[str, str]) -> None:
        status, pod = self._get(host, headers)
        shown = " ".join(f"-H '{name}: {value}'" for name, value in {"Host": host, **headers}.items())
        say(f"  {what}:\n    {CURL} {shown} {self._proxy_url}/hello\n    {status} {pod}")

    def _split(self) -> None:
        counts = self._count()
        for service in sorted(counts):
            say(f"  {service}: {counts[service]:4d}  {'#' * round(40 * counts[service] / SAMPLE)}")

    def _count(self) -> collections.Counter[str]:
        return collections.Counter(self._pod("shop.example.org").rpartition("-")[0] for _ in range(SAMPLE))

    def _even(self) -> bool:
        return self._count()["shop-v2"] > SAMPLE // 3

    def _pod(self, host: str) -> str:
        return self._get(host, {})[1]

    def _get(self, host: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """Return the status and the pod that responded, if any."""
        request = urllib.request.Request(f"{self._proxy_url}/hello", headers={"Host": host, **headers})
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.headers.get("X-Pod", "")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers.get("X-Pod", "")


def with_weights(route: str, first: int, second: int) -> str:
    """Return the text of examples/quickstart/route.yaml with other weights."""
    return route.replace("weight: 90", f"weight: {first}").replace("weight: 10", f"weight: {second}")


def _edit_weights(file: Path, first: int, second: int) -> None:
    file.write_text(with_weights(file.read_text(), first, second))


def _tell(gateway: DevGateway, manifests: Path, controller: Controller) -> None:
    """Print commands to try."""
    say("It keeps running. Edit these files and send requests; Ctrl-C ends it.")
    say(f"  objects     {manifests}")
    say(f"  gateway     {gateway.proxy_url}")
    say(f"  status page {controller.url}/status")
    say(f"  Admin API   {gateway.admin_url}  (X-API-KEY: {gateway.admin_key})")
    say(f"  log         tail -f {controller.process.log}")


if __name__ == "__main__":
    sys.exit(main())
