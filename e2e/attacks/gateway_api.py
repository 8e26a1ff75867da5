"""A Gateway of the operator, and HTTPRoutes of tenants for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.attacks.installation import MARK, Tenants, gateway_class
from e2e.cluster.client import Manifest
from e2e.conftest import OWN
from e2e.definitions.gateway_kinds import http_route, make

ALL = {"namespaces": {"from": "All"}}


@pytest.fixture
def infra(tenants: Tenants) -> Iterator[str]:
    """A third namespace, of the operator, with a Gateway that takes routes and ListenerSets of every namespace."""
    api, labels = tenants.installation.api, OWN | {MARK: tenants.installation.mark}
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": ALL}
    spec: dict[str, Any] = {"gatewayClassName": "apisix", "listeners": [listener], "allowedListeners": ALL}
    with api.namespace("infra", labels=labels) as namespace:
        api.apply([gateway_class(), make("Gateway", "gw", **spec)], namespace=namespace)
        yield namespace


def route_of(infra: str, name: str, host: str, service: str = "web", **rule: object) -> Manifest:
    """Return an HTTPRoute of the shared Gateway."""
    made = http_route(host, {"name": service, "port": 80}, name=name, **rule)
    made["spec"]["parentRefs"] = [{"name": "gw", "namespace": infra}]
    return made
