"""Certificates of listeners, and the client certificates that they require."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from tests.unit.translation.gateway.objects import (
    CLASS,
    gateway,
    listener,
    of_listeners,
    route,
    rule,
    secure,
    verdicts,
)
from tests.unit.translation.gateway.tls_objects import ACCEPTED, GOOD, POOL, frontend, pair, ssls
from tests.unit.translation.objects import make, pem, secret, service
from tests.unit.translation.settling import bodies, settle


def test_certificates_become_one_ssl_record_per_listener() -> None:
    entry = gateway(secure("any", "one", "two"), secure("host", "one", hostname="A.example.com"))
    found = settle(CLASS, entry, pair("one"), pair("two", serial=2))
    snis = {str(each.get("sni") or each["snis"]): "certs" in each for each in ssls(found)}
    assert snis == {"*": True, "['a.example.com']": False}
    guards = {str(body["name"]): body for path, body in bodies(found).items() if path.startswith("routes")}
    assert sorted(guards) == [
        "Gateway_default_gw_any_misdirected",
        "Gateway_default_gw_host_isolation",
        "Gateway_default_gw_host_misdirected",
    ]
    names = guards["Gateway_default_gw_any_misdirected"]["vars"][-1]
    assert names == ["!AND", ["scheme", "==", "https"], ["ssl_server_name", "!", "~*", r"^(a\.example\.com)$"]]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ([], "InvalidCertificateRef"),
        ([{"name": "absent"}], "InvalidCertificateRef"),
        ([{"name": "broken"}], "InvalidCertificateRef"),
        ([{"kind": "ConfigMap", "name": "cert"}], "InvalidCertificateRef"),
        ([{"group": "example.org", "name": "cert"}], "InvalidCertificateRef"),
        ([{"name": "far", "namespace": "other"}], "RefNotPermitted"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_reported(reference: list[JsonObject], reason: str) -> None:
    entry = gateway(listener("https", 443, "HTTPS", tls={"certificateRefs": reference}))
    found = settle(CLASS, entry, secret("broken", tls__crt="x", tls__key="y"), pair("far", namespace="other"))
    want = {
        "Accepted": "Accepted",
        "Conflicted": "!NoConflicts",
        "ResolvedRefs": f"!{reason}",
        "Programmed": "!Invalid",
    }
    assert of_listeners(found) == {"https": want}
    assert ssls(found) == []


def test_a_certificate_of_another_namespace_needs_a_grant() -> None:
    source = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "default"}
    grant = make(
        "ReferenceGrant", "g", namespace="other", spec={"from": [source], "to": [{"group": "", "kind": "Secret"}]}
    )
    found = settle(CLASS, gateway(secure("https", "other/far")), pair("far", namespace="other"), grant)
    assert of_listeners(found) == {"https": GOOD}


def ca(name: str = "ca", **data: str) -> JsonObject:
    return {"kind": CA_BUNDLE, "metadata": {"name": name, "namespace": "default"}, "data": data}


def test_client_certificates_are_verified_with_a_ca() -> None:
    bundle = {"kind": "ConfigMap", "name": "ca"}
    more = secret("more", ca__crt=pem(3).certificate)
    for mode, skipped in (("AllowValidOnly", False), ("AllowInsecureFallback", True)):
        tls = frontend(bundle, {"name": "more"}, mode=mode)
        entry = gateway(listener(), secure("https", "cert"), tls=tls)
        found = settle(CLASS, entry, pair(), more, ca(**{"ca.crt": pem(4).certificate}))
        (body,) = ssls(found)
        assert body["client"]["ca"].count("BEGIN CERTIFICATE") == 2
        assert ("skip_mtls_uri_regex" in body["client"]) == skipped
        assert ("InsecureFrontendValidationMode" in verdicts(found, "Gateway", "gw")) == skipped


def test_older_versions_verify_clients_at_the_listener() -> None:
    """The field was experimental before v1.5: a listener with it must not admit every client."""
    entry = gateway(secure("https", "cert"), secure("open", "cert", port=444, hostname="open.test"))
    reference = {"kind": "ConfigMap", "name": "ca"}
    entry["spec"]["listeners"][0]["tls"]["frontendValidation"] = {"caCertificateRefs": [reference]}
    found = settle(CLASS, entry, pair(), *bundles(), route(rule()), service())
    assert ["client" in body for body in ssls(found)] == [True, False]
    (body,) = [
        each
        for each in bodies(found).values()
        if str(each.get("name", "")).startswith("HTTPRoute_default_app_") and "_https" in str(each["name"])
    ]
    assert ["ssl_client_verify", "==", "SUCCESS"] in body["vars"]
    plain = gateway(secure("https", "cert"), name="plain")
    assert all(
        "client" in body
        for body in ssls(settle(CLASS, gateway(*entry["spec"]["listeners"][:1]), plain, pair(), *bundles()))
    )


def test_routes_behind_client_certificates_ask_for_a_verified_one() -> None:
    for mode, want in (("AllowValidOnly", True), ("AllowInsecureFallback", False)):
        tls = frontend({"kind": "ConfigMap", "name": "ca"}, mode=mode)
        bundle = ca(**{"ca.crt": pem(4).certificate})
        found = settle(CLASS, gateway(secure("https", "cert"), tls=tls), pair(), bundle, route(rule()), service())
        (app,) = (body for body in bodies(found).values() if str(body.get("name", "")).startswith("HTTPRoute"))
        assert (["ssl_client_verify", "==", "SUCCESS"] in app["vars"]) == want


def verified(name: str = "gw", *, bundle: str = "ca", created: str = "2026-01-01", **rest: Any) -> JsonObject:
    """Return a Gateway with an HTTPS listener that verifies clients, unless the bundle is empty."""
    tls = {"tls": frontend({"kind": "ConfigMap", "name": bundle}, **rest)} if bundle else {}
    found = gateway(secure("https", "cert"), name=name, **tls)
    found["metadata"]["creationTimestamp"] = f"{created}T00:00:00Z"
    return found


def bundles() -> list[JsonObject]:
    return [ca("ca", **{"ca.crt": pem(4).certificate}), ca("other", **{"ca.crt": pem(5).certificate})]


def test_listeners_of_one_hostname_ask_for_the_same_client_certificates() -> None:
    """A gateway uses one of their ssl records for all of them: none may refuse clients of the others."""
    entries = [verified(), verified("plain", bundle="")]
    found = settle(CLASS, *entries, pair(), *bundles(), route(rule()), service())
    clients = [body["client"] for body in ssls(found)]
    assert clients[0] == clients[1]
    assert clients[0]["skip_mtls_uri_regex"] == [".*"]
    assert not [body for body in bodies(found).values() if str(body.get("name", "")).endswith("_unverified")], (
        "without an address of its own, it would close connections of every other host"
    )
    found = settle(CLASS, *entries, pair(), *bundles(), options=POOL)
    unverified = [body for body in bodies(found).values() if str(body.get("name", "")).endswith("_unverified")]
    assert [each["plugins"]["fault-injection"]["abort"]["http_status"] for each in unverified] == [444]
    assert unverified[0]["vars"][-1] == ["ssl_client_verify", "~=", "SUCCESS"]
    strict = settle(CLASS, *(verified(), verified("again")), pair(), *bundles())
    assert ["skip_mtls_uri_regex" in body["client"] for body in ssls(strict)] == [False, False]


def test_a_younger_listener_with_other_client_cas_is_refused() -> None:
    """Clients that the older one's CA vouches for must not reach its routes."""
    entries = [verified(created="2026-02-01"), verified("old", bundle="other")]
    found = settle(CLASS, *entries, pair(), *bundles(), route(rule()), service())
    assert of_listeners(found)["https"]["Accepted"] == "!UnsupportedValue"
    assert of_listeners(found, name="old")["https"] == GOOD
    (body,) = ssls(found)
    assert "skip_mtls_uri_regex" not in body["client"]
    assert not [name for name in bodies(found) if "HTTPRoute" in str(bodies(found)[name].get("name"))]
    # Of one Gateway's ports, too.
    ports = gateway(
        secure("a", "cert"), secure("b", "cert", port=444), tls=frontend({"kind": "ConfigMap", "name": "ca"})
    )
    per_port = {"port": 444, "tls": frontend({"kind": "ConfigMap", "name": "other"})["frontend"]["default"]}
    ports["spec"]["tls"]["frontend"]["perPort"] = [per_port]
    accepted = [each["Accepted"] for each in of_listeners(settle(CLASS, ports, pair(), *bundles())).values()]
    assert accepted == ["Accepted", "!UnsupportedValue"]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"kind": "ConfigMap", "name": "absent"}, "InvalidCACertificateRef"),
        ({"kind": "ConfigMap", "name": "ca"}, "InvalidCACertificateRef"),
        ({"kind": "Secret", "name": "absent"}, "InvalidCACertificateRef"),
        ({"kind": "Service", "name": "ca"}, "InvalidCACertificateKind"),
        ({"kind": "ConfigMap", "name": "ca", "namespace": "other"}, "RefNotPermitted"),
    ],
)
def test_without_a_ca_that_can_be_used_no_client_is_let_in(reference: JsonObject, reason: str) -> None:
    entry = gateway(listener(), secure("https", "cert"), tls=frontend(reference))
    found = settle(CLASS, entry, pair(), ca(**{"ca.crt": "no certificate"}))
    got = of_listeners(found)
    assert got["http"] == GOOD
    assert (got["https"]["Accepted"], got["https"]["ResolvedRefs"]) == ("!NoValidCACertificate", f"!{reason}")
    assert ssls(found) == []


def test_the_validation_of_a_port_precedes_its_default() -> None:
    tls = {"frontend": {"perPort": [{"port": 443, "tls": {}}], **frontend({"name": "absent"})["frontend"]}}
    found = settle(CLASS, gateway(secure("https", "cert"), tls=tls), pair())
    assert of_listeners(found) == {"https": GOOD}


@pytest.mark.parametrize(("name", "reason"), [("cert", "ResolvedRefs"), ("absent", "!InvalidClientCertificateRef")])
def test_the_client_certificate_for_backends_is_resolved(name: str, reason: str) -> None:
    found = settle(CLASS, gateway(tls={"backend": {"clientCertificateRef": {"name": name}}}), pair())
    assert verdicts(found, "Gateway", "gw") == {**ACCEPTED, "ResolvedRefs": reason}
