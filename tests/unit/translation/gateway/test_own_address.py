"""Whether gateways can reach themselves at `gateway_api.loopback`, according to their Service."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.keys import ObjectKey
from tests.unit.translation.objects import service, slice_of, world
from translation.gateway.own_address import wrong_loopback

FRONT = ObjectKey("Service", "default", "web")
LOOPBACK = "http://127.0.0.1:9080"
PORTS = ({"port": 80, "name": "web", "targetPort": 9080}, {"port": 443, "name": "tls", "targetPort": 9443})


def wrong(port: int = 9080, name: str = "web", loopback: str = LOOPBACK, ports: Any = PORTS) -> str:
    front = service(ports=ports)
    slices = slice_of(["10.1.0.1"], port=port, port_name=name)
    return wrong_loopback(FRONT, world(front, slices).view(), loopback)


def test_a_port_that_no_gateway_accepts_http_on_is_named() -> None:
    assert wrong(8000) == (
        "mirrored requests and the filter ExternalAuth fail: gateways accept HTTP on port 8000 according to Service "
        "default/web, but gateway_api.loopback is http://127.0.0.1:9080; correct its port"
    )


@pytest.mark.parametrize("loopback", [LOOPBACK, "http://127.0.0.1:9080/", "http://[::1]:9080"])
def test_the_port_of_the_gateways_is_right(loopback: str) -> None:
    assert wrong(loopback=loopback) == ""


@pytest.mark.parametrize(
    "loopback", ["http://gateway.example.org:9080", "http://192.0.2.1:1", "https://127.0.0.1:9443"]
)
def test_nothing_is_known_about_other_addresses(loopback: str) -> None:
    assert wrong(8000, loopback=loopback) == ""


def test_nothing_is_known_without_a_service_its_endpoints_or_a_port_for_http() -> None:
    assert wrong_loopback(None, world().view(), LOOPBACK) == ""
    assert wrong_loopback(FRONT, world().view(), LOOPBACK) == ""
    assert wrong_loopback(FRONT, world(service(ports=PORTS)).view(), LOOPBACK) == ""
    assert wrong(8000, name="tls") == ""


@pytest.mark.parametrize("port", [{"port": 8080, "name": "http"}, {"port": 8080, "name": "a", "appProtocol": "http"}])
def test_a_port_for_http_may_have_another_number(port: dict[str, Any]) -> None:
    assert wrong(8000, name=port["name"], ports=(port,)) != ""
