"""The story of the chart's NetworkPolicy: connections between Pods and the node, with the policy and without it.

Connections are made in the network namespaces of the Pods, by processes of the node, so images need no tools for it.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from e2e.cluster.client import Manifest, wait_until
from e2e.devgateway.ports import split_address
from e2e.release.node.installation import CHART, RELEASE, Installation
from e2e.release.rehearsal import Facts, Rehearsal

SYNCED_SECONDS = 60.0
LISTEN = """
import select, socket, sys
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
sockets = []
for word in sys.argv[1:]:
    name, port = word.split(":")
    sockets.append(sock := socket.socket(type=KINDS[name]))
    sock.bind(("0.0.0.0", int(port)))
    if name == "tcp":
        sock.listen()
print("listening", flush=True)
while True:
    for sock in select.select(sockets, [], [])[0]:
        if sock.type == socket.SOCK_STREAM:
            sock.accept()[0].close()
        else:
            sock.sendto(*sock.recvfrom(64))
"""
CONNECT = """
import socket, sys
name, host, port = sys.argv[1:]
kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[name]
with socket.socket(type=kind) as sock:
    sock.settimeout(2)
    sock.connect((host, int(port)))
    if name == "udp":
        sock.send(b"hello")
        sock.recv(64)
"""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection from a Pod to a port; `permitted` if the policy of the chart lets it through."""

    what: str
    source: int
    protocol: str
    host: str
    port: int
    permitted: bool

    def is_open(self) -> bool:
        """Return whether it can be made: 2 seconds without a response, or a rejection, is blocked."""
        command = _in_network(self.source, CONNECT, self.protocol, self.host, str(self.port))
        return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0


def enforce(at: Installation, rehearsal: Rehearsal) -> Facts:
    """Check each connection with the policy, without it, and with it again; the controller works all the time."""
    leader = at.wait_for_leader(at.wait_for_two())
    controller = next(pod for pod in at.controllers() if pod["metadata"]["name"] == leader)
    backend = at.node.pods(at.api, "default", "app=web")[0]
    with _listening(at.pid(controller), "tcp:9999"), _listening(at.pid(backend), "tcp:53", "udp:53"):
        connections = _connections(at, controller, backend)
        with at.under_traffic() as loop:
            _wait_for(connections, policy=True)
            at.changes_arrive("/with-a-policy")
            values = {"networkPolicy.enabled": "false"}
            at.helm("upgrade", RELEASE, rehearsal.checkout / CHART, "--reset-then-reuse-values", **values)
            _wait_for(connections, policy=False)
            at.helm("rollback", RELEASE)
            _wait_for(connections, policy=True)
            at.changes_arrive("/with-the-policy-again")
    return {
        "enforced by": "the policy controller of kube-router",
        "let through": ", ".join(each.what for each in connections if each.permitted),
        "blocked, but open without the policy": ", ".join(each.what for each in connections if not each.permitted),
        "requests": f"{len(loop.answers)}, none lost",
    }


def _connections(at: Installation, controller: Manifest, backend: Manifest) -> tuple[Connection, ...]:
    inside, outside = at.pid(controller), at.pid(backend)
    own, other = (pod["status"]["podIP"] for pod in (controller, backend))
    service = at.api.get("Service", "kubernetes")["spec"]["clusterIP"]
    admin, proxy = (split_address(each) for each in (at.gateway.admin_address, at.gateway.proxy_address))
    return (
        Connection("to the API server", inside, "tcp", service, 443, permitted=True),
        Connection("to the Admin API", inside, "tcp", *admin, permitted=True),
        Connection("to a name server by TCP", inside, "tcp", other, 53, permitted=True),
        Connection("to a name server by UDP", inside, "udp", other, 53, permitted=True),
        Connection("from a Pod to the metrics", outside, "tcp", own, 8080, permitted=True),
        Connection("to a backend", inside, "tcp", other, 8000, permitted=False),
        Connection("to another port of the gateway", inside, "tcp", *proxy, permitted=False),
        Connection("from a Pod to another port of the controller", outside, "tcp", own, 9999, permitted=False),
    )


def _wait_for(connections: Sequence[Connection], *, policy: bool) -> None:
    wanted = {each.what: each.permitted or not policy for each in connections}
    wait_until(
        lambda: {each.what: each.is_open() for each in connections},
        lambda got: got == wanted,
        f"the connections that are open {'with' if policy else 'without'} the policy",
        SYNCED_SECONDS,
    )


@contextmanager
def _listening(pid: int, *ports: str) -> Iterator[None]:
    """Listen in the network namespace of a process during a block, and send back what is received."""
    command = _in_network(pid, LISTEN, *ports)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "listening\n", f"cannot listen on {ports}"
            yield
        finally:
            listener.kill()


def _in_network(pid: int, program: str, *words: str) -> list[str]:
    return ["nsenter", "--target", str(pid), "--net", sys.executable, "-c", program, *words]
