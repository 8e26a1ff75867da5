"""`dashboard`: opens the status page of the leader in a browser."""

from __future__ import annotations

import webbrowser
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import fail
from apisix_ingress.commands.common.running import leader_port

PortOption = Annotated[
    int, Option("--port", metavar="PORT", limits=(0, 65535), help="Local port; by default any free one.")
]
NoOpenOption = Annotated[bool, Option("--no-open", help="Only print the address; do not open a browser.")]


@connects(gateways=False)
def dashboard(port: PortOption = 0, no_open: NoOpenOption = False, *, connection: Connection) -> None:
    """Open the status page of the leader in a browser.

    It finds the leader by its Lease, forwards a local port to its Pod with `kubectl port-forward`, prints the address
    and runs until you press Ctrl-C. Without --controller-namespace, the Lease is in the namespace that the
    ClusterRoleBinding of the controller names.

    Exit 0 after Ctrl-C, 2 if there is no leader or the connection to it ends.

    Examples:
        apisix-ingress dashboard
        apisix-ingress dashboard --context production --port 8080 --no-open
    """
    try:
        with leader_port(connection, port) as (pod, found):
            print(f"Pod {pod.namespace}/{pod.name} leads; its status page: {found.url}/status", flush=True)
            if not no_open:
                _open(f"{found.url}/status")
            reason = found.wait()
    except KeyboardInterrupt:
        return
    fail(f"the connection to Pod {pod.name} ended{f': {reason}' if reason else ''}; start the command again")


def _open(url: str) -> None:
    webbrowser.open(url)
