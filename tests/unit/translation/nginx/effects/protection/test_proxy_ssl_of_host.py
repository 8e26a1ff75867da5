"""proxy-ssl-secret of one Ingress applies to all HTTPS backends of the host, as in ingress-nginx."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import pem

PAIR = pem()
BACKEND = {
    "kind": "Secret",
    "metadata": {"name": "backend", "namespace": "shop"},
    "stringData": {"ca.crt": PAIR.certificate, "tls.crt": PAIR.certificate, "tls.key": PAIR.key},
}
LOCATION_ONLY = {
    "kind": "ConfigMap",
    "metadata": {"name": "config", "namespace": "ingress-nginx"},
    "data": {"proxy-ssl-location-only": "true"},
}


def verified(*objects: dict[str, Any]) -> set[str]:
    """Return the paths whose backend is verified."""
    routes = [record.body for record in translated(BACKEND, *objects).records if record.key.kind == "routes"]
    return {
        uri
        for body in routes
        for uri in body["uris"]
        if "upstream_id" in body and "'depth'" in str(body["plugins"]) and "'ca'" in str(body["plugins"])
    }


def asking(**given: Any) -> dict[str, Any]:
    return ingress("first", ("/a", "Exact"), proxy_ssl_secret="shop/backend", proxy_ssl_verify="on", **given)


OTHERS = [
    ingress("https", ("/https", "Exact"), age=1, backend_protocol="HTTPS"),
    ingress("http", ("/http", "Exact"), age=1),
]


def test_backends_of_other_ingresses_of_the_host_are_verified() -> None:
    assert verified(asking(backend_protocol="HTTPS"), *OTHERS) == {"/a", "/https"}


def test_a_setting_of_the_config_map_limits_it_to_the_ingress() -> None:
    assert verified(asking(backend_protocol="HTTPS"), *OTHERS, LOCATION_ONLY) == {"/a"}


def test_backends_of_other_namespaces_do_not_get_the_certificate() -> None:
    other = ingress("https", ("/https", "Exact"), age=1, backend_protocol="HTTPS")
    other["metadata"]["namespace"] = "team"

    assert verified(asking(backend_protocol="HTTPS"), other) == {"/a"}


@pytest.mark.parametrize("annotation", ["auth_tls_secret", "proxy_ssl_secret"])
def test_settings_for_the_tls_of_a_host_may_come_from_its_canary(annotation: str) -> None:
    main = ingress("https", ("/", "Exact"), backend_protocol="HTTPS")
    given: dict[str, Any] = {annotation: "shop/backend", "proxy_ssl_verify": "on"}
    canary = ingress("canary", ("/", "Exact"), age=1, service="next", canary="true", **given)

    outcome = translated(BACKEND, main, canary)

    if annotation == "proxy_ssl_secret":
        assert verified(main, canary) == {"/"}
    else:
        assert any("client" in record.body for record in outcome.records if record.key.kind == "ssls")
