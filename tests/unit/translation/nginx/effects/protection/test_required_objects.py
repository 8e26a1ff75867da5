"""Annotations whose Secret, ConfigMap or address cannot be used: requests are rejected, and the Ingress reports why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from tests.unit.translation.objects import pem

BASIC: dict[str, Any] = {"auth_type": "basic", "auth_secret": "users"}
CLIENT: dict[str, Any] = {"auth_tls_secret": "shop/ca"}


def secret(name: str, **data: str) -> dict[str, Any]:
    """Return a Secret; in names of keys, two underscores are a dot."""
    texts = {key.replace("__", "."): text for key, text in data.items()}
    return {"kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, "stringData": texts}


def statuses(outcome: Outcome) -> set[int | None]:
    """Return the responses of the routes; None for those with a backend."""
    found = (record.body["plugins"].get("fault-injection") for record in outcome.records if record.key.kind == "routes")
    return {each["abort"]["http_status"] if each else None for each in found}


@pytest.mark.parametrize(
    ("given", "objects", "status", "words"),
    [
        (BASIC, [], 503, "Secret shop/users does not exist; create it"),
        (BASIC, [secret("users", other="x")], 503, "Secret shop/users has no key auth"),
        (BASIC | {"auth_secret": "other/users"}, [], 503, "is in another namespace"),
        (CLIENT, [], 403, "Secret shop/ca does not exist; create it"),
        ({"auth_tls_secret": "other/ca"}, [], 403, "is in another namespace"),
        (CLIENT, [secret("ca", ca__crt="-----BEGIN CERTIFICATE-----")], 403, "no PEM certificate under ca.crt"),
        ({"proxy_ssl_secret": "shop/absent"}, [], 503, "Secret shop/absent does not exist"),
        ({"custom_headers": "shop/absent"}, [], 503, "its ConfigMap does not exist"),
        ({"auth_url": "http://a.test", "auth_proxy_set_headers": "shop/absent"}, [], 503, "its ConfigMap does not"),
    ],
)
def test_an_object_that_cannot_be_used_is_reported_with_the_response(
    given: dict[str, Any], objects: list[dict[str, Any]], status: int, words: str
) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), **given), *objects)

    assert statuses(outcome) == {status}
    ((key, problem),) = [each for each in outcome.problems if each[1].code == "NginxNotServed"]
    assert (str(key), problem.severity) == ("Ingress shop/web", "degraded")
    assert problem.path.rpartition("/")[2].rstrip("]") in {name.replace("_", "-") for name in given}
    assert words in problem.message
    assert problem.message.endswith(f"respond with {status}, as with ingress-nginx")


def test_a_key_pair_without_a_ca_closes_the_host_although_ingress_nginx_would_ask_for_no_certificate() -> None:
    found = pem()
    pair = secret("ca", tls__crt=found.certificate, tls__key=found.key)

    outcome = translated(ingress("web", ("/", "Prefix"), **CLIENT), pair)

    assert statuses(outcome) == {403}
    ((_, problem),) = outcome.problems
    assert problem.message.endswith("put the CA there. Until then, its hosts respond with 403")


def test_an_address_that_the_settings_do_not_permit_is_reported() -> None:
    options = replace(OPTIONS, external_addresses="refuse-internal")

    outcome = translated(ingress("web", ("/", "Prefix"), auth_url="http://127.0.0.1/"), options=options)

    assert statuses(outcome) == {503}
    assert [problem.code for _, problem in outcome.problems if "auth-url" in problem.path] == ["NginxNotServed"]


def test_a_backend_that_cannot_be_verified_is_reported() -> None:
    found = pem()
    pair = secret("backend", tls__crt=found.certificate, tls__key=found.key)
    given: dict[str, Any] = {"backend_protocol": "HTTPS", "proxy_ssl_secret": "shop/backend", "proxy_ssl_verify": "on"}

    outcome = translated(ingress("web", ("/", "Prefix"), **given), pair)

    assert statuses(outcome) >= {503}
    assert "NginxNotServed" in [problem.code for _, problem in outcome.problems if "proxy-ssl-verify" in problem.path]


@pytest.mark.parametrize("namespace", ["shop", "other"])
def test_a_backend_that_cannot_be_verified_as_its_host_requires_is_reported(namespace: str) -> None:
    found = pem()
    pair = secret("backend", tls__crt=found.certificate, tls__key=found.key, ca__crt=found.certificate)
    wide = ingress(
        "wide", ("/wide", "Exact"), backend_protocol="HTTPS", proxy_ssl_secret="shop/backend", proxy_ssl_verify="on"
    )
    heir = ingress("heir", ("/heir", "Exact"), age=1, backend_protocol="GRPCS")
    heir["metadata"]["namespace"] = namespace

    outcome = translated(wide, heir, pair)

    described = {str(key): problem.message for key, problem in outcome.problems if "proxy-ssl-verify" in problem.path}
    if namespace == "other":
        assert described == {}
    else:
        assert set(described) == {"Ingress shop/heir"}
        assert described["Ingress shop/heir"].startswith(
            "inherited from Ingress shop/wide on the same host: the backend"
        )


def test_objects_that_can_be_used_are_not_reported() -> None:
    objects = (secret("users", auth="me:{SHA}x"), secret("ca", ca__crt=pem().certificate))

    outcome = translated(ingress("web", ("/", "Prefix"), **BASIC, **CLIENT), *objects)

    assert outcome.problems == ()
