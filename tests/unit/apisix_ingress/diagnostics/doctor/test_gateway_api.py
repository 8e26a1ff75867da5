"""The check of `doctor` whether gateways can reach themselves."""

from __future__ import annotations

import pytest

from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor.gateway_api import check_loopback
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.settings.sections import StatusSettings
from apisix_ingress.state.world import Report
from tests.unit.translation.objects import OPTIONS, make, service, slice_of, world


def checked(port: int, **settings: str) -> tuple[str, str]:
    """Return level and remedy for gateways that accept HTTP on a port."""
    front = service(ports=[{"port": 80, "name": "http"}])
    found = world(make("Gateway", "gw"), front, slice_of(["10.1.0.1"], port=port, port_name="http"))
    found.reports[ObjectKey("Gateway", "default", "gw")] = Report(1)
    check = check_loopback(Inventory(found, OPTIONS), StatusSettings.model_validate(settings))
    return check.level, check.fix


@pytest.mark.parametrize(("port", "want"), [(8000, ("WARN", "correct its port")), (9080, ("OK", ""))])
def test_the_ports_of_the_service_are_compared(port: int, want: tuple[str, str]) -> None:
    assert checked(port, publish_service="default/web") == want


def test_without_the_service_of_the_gateways_nothing_is_known() -> None:
    assert checked(8000, publish_service="auto") == checked(8000, publish_service="") == ("SKIP", "")
