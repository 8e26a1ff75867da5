"""The golden cases with addresses of Ingresses: the expected status."""

import pytest

from apisix_ingress.model.keys import ObjectKey
from providers.status.status_addresses import Addresses
from tests.golden.cases import Case, all_cases, load
from tests.golden.driver import Driver

CASES = [case for case in all_cases() if (case.path / "status.yaml").exists()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_addresses_are_published_as_configured(case: Case) -> None:
    (wanted,) = load(case.path / "status.yaml")
    driver = Driver(case.options())
    driver.apply(case.objects(""))
    settings = wanted["settings"]
    addresses = Addresses(driver.world, settings["publish_service"], settings["addresses"])
    got = {name: addresses.of(ObjectKey("Ingress", *name.split("/"))) for name in wanted["ingress"]}
    assert got == wanted["ingress"]
