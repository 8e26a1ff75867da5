"""Paths of a gateway for its own requests: copies, and questions to a service that must permit a request.

Such a request gets the endpoints and settings of its backend like any other one. The address at which a gateway reaches
itself is `gateway_api.loopback`. These paths are for connections from it: a gateway may take the address of a client
from X-Forwarded-For, which copies have as well.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from translation.core.builder import Builder

_PRIORITY = 2**31 - 1


def own_path(prefix: str, name: str) -> str:
    """Return the path of the gateway's requests for a route record with this name."""
    return f"{prefix}/{sha256(name.encode()).hexdigest()[:16]}"


def add_route(
    draft: Builder, name: str, path: str, hosts: dict[str, Any], upstream_id: str, plugins: dict[str, Any]
) -> None:
    """Add a route record for the gateway's own requests below a path.

    Args:
        draft: The translation.
        name: The name of the record.
        path: The path, without a slash at its end.
        hosts: The field of the route record that causes the requests with its hosts; they have the same hosts.
        upstream_id: The upstream that gets the requests.
        plugins: By name.
    """
    body = draft.new_body("routes", name) | hosts
    body |= {
        "uri": f"{path}/*",
        "vars": [["realip_remote_addr", "==", "127.0.0.1"]],
        "priority": _PRIORITY,
        "upstream_id": upstream_id,
        "plugins": plugins,
    }
    draft.record("routes", name, body)
