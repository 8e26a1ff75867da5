"""Hosts with auth-tls-secret: no https request without a certificate reaches a backend."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import pem

CA = {
    "kind": "Secret",
    "metadata": {"name": "ca", "namespace": "shop"},
    "stringData": {"ca.crt": pem().certificate},
}


@pytest.mark.parametrize("host", ["shop.test", "*.shop.test", ""])
@pytest.mark.parametrize("alias", ["", "alias.test"])
def test_https_requests_need_a_verified_certificate_before_anything_else(host: str, alias: str) -> None:
    given: dict[str, Any] = {"server_alias": alias} if alias else {}
    item = ingress("web", ("/", "Prefix"), host=host, auth_tls_secret="shop/ca", **given)

    outcome = translated(item, CA)
    routes = [record.body for record in outcome.records if record.key.kind == "routes"]

    by_https = [each for each in routes if ["scheme", "==", "http"] not in each.get("vars", [])]
    first = max(by_https, key=lambda body: int(body["priority"]))
    assert ["ssl_client_verify", "!", "==", "SUCCESS"] in first["vars"]
    assert first["plugins"]["fault-injection"]["abort"]["http_status"] == 400
    assert all(each["uris"] == ["/*"] for each in routes)
    reported = [problem for _, problem in outcome.problems if "auth-tls-secret" in problem.path]
    assert bool(reported) == (not host)
