"""The version that all gateways have."""

from __future__ import annotations

from apisix_ingress.model.keys import Read
from apisix_ingress.state.gateway_versions import OLDEST, GatewayVersions


def test_the_oldest_version_is_decisive() -> None:
    changed: list[Read] = []
    versions = GatewayVersions(changed.append)
    assert versions.store.get(OLDEST) is None
    learned = [
        versions.learn(*each) for each in (("a", "APISIX/3.19.1"), ("a", "APISIX/3.19.2"), ("b", "APISIX/3.18.0"))
    ]
    assert learned == [True, False, True]
    found = versions.store.get(OLDEST)
    assert found is not None
    assert found.spec == {"version": [3, 18]}
    assert changed == [OLDEST, OLDEST]
    assert versions.learn("b", "APISIX/3.20.0")


def test_gateways_that_do_not_report_their_version_may_be_old() -> None:
    versions = GatewayVersions(lambda read: None)
    versions.learn("a", "APISIX/3.19.0")
    assert versions.learn("b", "nginx")
    found = versions.store.get(OLDEST)
    assert found is not None
    assert found.spec == {"version": [0, 0]}
