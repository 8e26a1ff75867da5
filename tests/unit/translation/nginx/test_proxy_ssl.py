"""TLS to backends: client certificates, server names, and verification (proxy-ssl-*)."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.native.written import served, written
from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import pem
from translation.nginx.functions.proxy_ssl import BACKEND_TLS

PAIR = {"tls.crt": pem(1).certificate, "tls.key": pem(1).key}
CA = "-----BEGIN CERTIFICATE-----\nMIIB\nAgM=\n-----END CERTIFICATE-----\n"


def secret(**data: str) -> dict[str, Any]:
    """Return a Secret with a client certificate and other data."""
    return {
        "kind": "Secret",
        "metadata": {"name": "backend", "namespace": "shop"},
        "stringData": PAIR | {name.replace("_", "."): text for name, text in data.items()},
    }


def backend(protocol: str = "HTTPS", **given: str) -> dict[str, Any]:
    """Return an Ingress that uses a client certificate for its backend."""
    found = ingress("web", ("/", "Exact"), backend_protocol=protocol, proxy_ssl_secret="shop/backend")
    prefix = "nginx.ingress.kubernetes.io/"
    found["metadata"]["annotations"] |= {f"{prefix}{name.replace('_', '-')}": text for name, text in given.items()}
    return found


def passed(outcome: Outcome) -> list[FrozenJson]:
    """Return the routes to the backend's own path."""
    routes = [record.body for record in outcome.records if record.key.kind == "routes"]
    return [body for body in routes if body["uris"] == ["/"] and body.get("upstream_id")]


def tls(body: FrozenJson) -> FrozenJson | None:
    """Return the data of a route's function for TLS; None without it."""
    plugin = body["plugins"].get("serverless-pre-function", {})
    assert (BACKEND_TLS in plugin.get("functions", ())) == ("tls" in plugin.get("ingress_nginx", {}))
    found: FrozenJson | None = plugin.get("ingress_nginx", {}).get("tls")
    return found


def client_certificates(outcome: Outcome) -> set[str]:
    """Return the ids of the client certificates that upstreams refer to."""
    upstreams = [record.body for record in outcome.records if record.key.kind == "upstreams"]
    return {body["tls"]["client_cert_id"] for body in upstreams if "tls" in body}


def verified(outcome: Outcome) -> list[FrozenJson]:
    """Return the data of the functions for TLS, with the CA from the record that they refer to."""
    shared = {
        record.key.id: record.body["plugins"]["serverless-pre-function"]["ingress_nginx"]
        for record in outcome.records
        if record.key.kind == "plugin_configs"
    }
    found = [dict(data) for body in passed(outcome) if (data := tls(body))]
    return [{**data, **shared[data["ca"]["plugin_config_id"]]} for data in found]


def test_a_verified_backend_needs_a_certificate_of_the_ca_for_the_name() -> None:
    outcome = translated(backend(proxy_ssl_verify="on", proxy_ssl_name="inner.test"), secret(ca_crt=CA + CA))

    assert verified(outcome) == [{"ca": ["MIIBAgM="] * 2, "depth": 1, "name": "inner.test"}] * 2


def test_without_a_name_the_certificate_must_have_the_one_that_ingress_nginx_expects() -> None:
    outcome = translated(backend(proxy_ssl_verify="on", proxy_ssl_verify_depth="3"), secret(ca_crt=CA))

    assert verified(outcome) == [{"ca": ["MIIBAgM="], "depth": 3, "name": "upstream_balancer"}] * 2


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, {}),
        ({"proxy_ssl_name": "inner.test"}, {}),
        ({"proxy_ssl_name": "inner.test", "proxy_ssl_server_name": "on"}, {"name": "inner.test"}),
    ],
)
def test_a_client_certificate_is_sent_without_verification(given: dict[str, str], want: dict[str, str]) -> None:
    assert [tls(body) for body in passed(translated(backend(**given), secret(ca_crt=CA)))] == [want] * 2


def test_only_requests_over_tls_are_verified() -> None:
    by_scheme = {
        body["vars"][-1][2]: tls(body)
        for body in passed(translated(backend("AUTO_HTTP", proxy_ssl_verify="on"), secret(ca_crt=CA)))
    }

    assert by_scheme["http"] is None
    assert by_scheme["https"]
    assert [tls(body) for body in passed(translated(backend("HTTP", proxy_ssl_verify="on"), secret()))] == [None] * 2


@pytest.mark.parametrize(
    ("protocol", "given", "ca"),
    [
        ("HTTPS", {}, ""),
        ("HTTPS", {}, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"),
        ("HTTPS", {"custom_http_errors": "404"}, CA),
        ("HTTPS", {"proxy_http_version": "1.0"}, CA),
        ("HTTPS", {"proxy_next_upstream": "error http_503"}, CA),
        ("HTTPS", {"proxy_read_timeout": "0"}, CA),
        ("GRPCS", {}, CA),
    ],
)
def test_a_path_whose_backend_cannot_be_verified_is_closed(protocol: str, given: dict[str, str], ca: str) -> None:
    got = translated(backend(protocol, proxy_ssl_verify="on", **given), secret(ca_crt=ca))

    bodies = [record.body for record in got.records if record.key.kind == "routes" and record.body["uris"] == ["/"]]
    assert {body["plugins"]["fault-injection"]["abort"]["http_status"] for body in bodies} == {503}


def test_verified_connections_are_never_shared_with_others() -> None:
    objects = secret(ca_crt=CA), backend(proxy_ssl_name="inner.test", proxy_ssl_server_name="on")
    verified = backend(proxy_ssl_name="inner.test", proxy_ssl_verify="on")

    ids = client_certificates(translated(*objects)), client_certificates(translated(objects[0], verified))

    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_a_manifest_for_a_backend_that_has_to_be_verified_closes_the_path() -> None:
    given = backend(proxy_ssl_verify="on", proxy_ssl_name="inner.test")

    got = served(written("apisixroute", given, secret(ca_crt=CA)), secret(ca_crt=CA))

    assert not passed(got)


def test_a_manifest_with_a_client_certificate_leaves_buffering_on() -> None:
    got = passed(served(written("apisixroute", backend(), secret()), secret()))

    assert got
    assert not any("proxy-buffering" in body["plugins"] for body in got)
