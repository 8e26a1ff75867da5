"""Requests to a running gateway, for its own tests."""

from __future__ import annotations

import http.client
import json
from typing import Any

from e2e.devgateway.process import DevGateway

Headers = dict[str, str]


def node(ports: dict[str, int], *names: str) -> dict[str, Any]:
    return {"type": "roundrobin", "nodes": {f"127.0.0.1:{ports[name]}": 1 for name in names or ("u1",)}}


def get(
    gateway: DevGateway, path: str, headers: Headers | None = None, *, method: str = "GET", body: str | None = None
) -> tuple[int, Headers, Any]:
    """Send one request to the data plane; returns (status, headers, decoded body)."""
    host, _, port = gateway.proxy_address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    try:
        return response.status, dict(response.getheaders()), json.loads(text)
    except ValueError:
        return response.status, dict(response.getheaders()), text
