"""Gateways, their listeners and certificates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import (
    CLASS,
    assessed,
    gateway,
    listener,
    of_listeners,
    of_parents,
    route,
    rule,
    secure,
    set_of,
    verdicts,
)
from tests.unit.translation.objects import OPTIONS, make, pem, secret, service
from tests.unit.translation.objects import rule as apisix_rule
from tests.unit.translation.settling import bodies, problems, settle

FROM_ALL: JsonObject = {"allowedListeners": {"namespaces": {"from": "All"}}}
ACCEPTED = {"Accepted": "Accepted", "Programmed": "Programmed"}
GOOD = {**ACCEPTED, "Conflicted": "!NoConflicts", "ResolvedRefs": "ResolvedRefs"}


def pair(name: str = "cert", *, serial: int = 1, namespace: str = "default") -> JsonObject:
    made = pem(serial)
    return secret(name, namespace=namespace, tls__crt=made.certificate, tls__key=made.key)


def ssls(found: World) -> list[JsonObject]:
    return [dict(body) for path, body in bodies(found).items() if path.startswith("ssls")]


def test_a_gateway_with_a_listener_is_programmed() -> None:
    found = settle(CLASS, gateway())
    assert verdicts(found, "Gateway", "gw") == ACCEPTED
    assert of_listeners(found) == {"http": GOOD}
    assert assessed(found, "Gateway", "gw").listeners[0].kinds == ("HTTPRoute", "GRPCRoute")
    assert bodies(found) == {}


def test_gateways_of_other_classes_are_left_alone() -> None:
    foreign = make("GatewayClass", "apisix", namespace="", spec={"controllerName": "example.org/other"})
    nameless = make("Gateway", "none", spec={"listeners": []})
    found = settle(foreign, gateway(), nameless, route(rule()))
    assert not found.reports


def test_a_class_with_parameters_is_refused() -> None:
    spec = {**CLASS["spec"], "parametersRef": {"kind": "X", "name": "x"}}
    found = settle(make("GatewayClass", "apisix", namespace="", spec=spec))
    assert verdicts(found, "GatewayClass", "apisix", "") == {"Accepted": "!InvalidParameters"}
    assert "HTTPRoute" in assessed(settle(CLASS), "GatewayClass", "apisix", "").features


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (listener("b", 80, "HTTP"), "HostnameConflict"),
        (listener("b", 80, "TCP"), "ProtocolConflict"),
        (listener("b", 80, "UDP"), ""),
        (listener("b", 80, "HTTP", hostname="a.example.com"), ""),
        (listener("b", 81, "HTTP"), ""),
    ],
)
def test_listeners_of_one_port_conflict(second: JsonObject, reason: str) -> None:
    found = settle(CLASS, gateway(listener("a"), second, listener("c", 8080)))
    refused = dict.fromkeys(("Accepted", "Programmed"), f"!{reason}")
    want = {**refused, "Conflicted": reason, "ResolvedRefs": "ResolvedRefs"} if reason else GOOD
    assert of_listeners(found) == {"a": want, "b": want, "c": GOOD}
    assert problems(found)["Gateway default/gw"] == (["ListenerNotReady"] * 2 if reason else [])
    expected = "ListenersNotValid" if reason else "Accepted"
    assert verdicts(found, "Gateway", "gw") == {"Accepted": expected, "Programmed": "Programmed"}


def test_https_and_tls_share_a_port_by_hostname() -> None:
    tls = listener("tls", 443, "TLS", hostname="b.example.com", tls={"certificateRefs": [{"name": "cert"}]})
    found = settle(CLASS, gateway(secure("https", "cert", hostname="a.example.com"), tls), pair())
    assert of_listeners(found) == {"https": GOOD, "tls": GOOD}


@pytest.mark.parametrize(
    ("only", "reason"),
    [
        (listener("a", 80, "SCTP"), "UnsupportedProtocol"),
        (listener("a", 443, "TLS", tls={"mode": "Passthrough"}), "UnsupportedValue"),
    ],
)
def test_a_gateway_without_a_listener_that_can_be_served_is_refused(only: JsonObject, reason: str) -> None:
    found = settle(CLASS, gateway(only))
    assert of_listeners(found)["a"]["Accepted"] == f"!{reason}"
    assert verdicts(found, "Gateway", "gw") == {"Accepted": "!ListenersNotValid", "Programmed": "!Invalid"}


def test_kinds_that_a_listener_cannot_take_are_reported() -> None:
    kinds = [{"kind": "HTTPRoute"}, {"kind": "TCPRoute"}, {"group": "example.org", "kind": "HTTPRoute"}]
    found = settle(CLASS, gateway(listener(allowedRoutes={"kinds": kinds})))
    assert of_listeners(found)["http"]["ResolvedRefs"] == "!InvalidRouteKinds"
    assert assessed(found, "Gateway", "gw").listeners[0].kinds == ("HTTPRoute",)


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


def frontend(*references: JsonObject, mode: str = "AllowValidOnly") -> JsonObject:
    return {"frontend": {"default": {"validation": {"caCertificateRefs": list(references), "mode": mode}}}}


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
        if "HTTPRoute_default_app_0_0_" in str(each.get("name")) and "_https" in str(each["name"])
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


def test_a_listener_that_cannot_be_served_closes_connections_at_its_address() -> None:
    pooled = replace(OPTIONS, gateway_addresses=("192.0.2.1",))
    tls = frontend({"kind": "ConfigMap", "name": "absent"})
    entry = gateway(listener(), secure("https", "cert", hostname="a.test"), tls=tls)
    found = settle(CLASS, entry, pair(), options=pooled)
    (body,) = (dict(body) for path, body in bodies(found).items() if path.startswith("routes"))
    assert (body["hosts"], body["plugins"]["fault-injection"]["abort"]["http_status"]) == (["a.test"], 444)
    assert body["vars"] == [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "443"]]
    assert not ssls(found)


def test_a_hostname_of_another_namespace_is_refused() -> None:
    older = make("ApisixRoute", "web", namespace="other", spec={"http": [apisix_rule(match={"hosts": ["a.test"]})]})
    older["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    owned = replace(OPTIONS, host_ownership="namespace")
    entry = gateway(listener("a", hostname="a.test"), listener("b", hostname="b.test"), listener("c", 90, "TCP"))
    found = settle(CLASS, entry, older, service(namespace="other"), options=owned)
    accepted = {name: each["Accepted"] for name, each in of_listeners(found).items()}
    assert accepted == {"a": "!UnsupportedValue", "b": "Accepted", "c": "Accepted"}


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


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"infrastructure": {"parametersRef": {"group": "g", "kind": "K", "name": "n"}}}, "!InvalidParameters"),
        ({"addresses": [{"type": "example.org/vip", "value": "x"}]}, "!UnsupportedAddress"),
    ],
)
def test_what_a_gateway_cannot_have_is_refused(spec: JsonObject, want: str) -> None:
    objects = (route(rule()), set_of(listener("x", 81)), service())
    found = settle(CLASS, gateway(listener(hostname="a.test"), **spec, **FROM_ALL), *objects)
    assert verdicts(found, "Gateway", "gw") == {"Accepted": want, "Programmed": "!Invalid"}
    assert of_listeners(found) == {"http": {**GOOD, "Programmed": "!Pending"}}
    assert of_parents(found)[0]["Accepted"] == "!Pending"
    assert verdicts(found, "ListenerSet", "set")["Accepted"] == "!ParentNotAccepted"
    assert [path for path in bodies(found) if not path.startswith("upstreams")] == []


def test_a_spec_that_cannot_be_read_keeps_what_is_published() -> None:
    found = settle(CLASS, gateway({"name": "http"}), route(rule()), set_of(listener("x", 81)))
    assert problems(found)["Gateway default/gw"] == ["InvalidSpec", "InvalidSpec"]
    assert assessed(found, "HTTPRoute", "app").parents[0].verdicts[0].reason == "NoMatchingParent"
    assert verdicts(found, "ListenerSet", "set")["Accepted"] == "!ParentNotAccepted"


POOL = replace(OPTIONS, gateway_addresses=("192.0.2.1", "192.0.2.2"))


def addresses(found: World, *names: str) -> list[str]:
    every = [assessed(found, "Gateway", name).addresses for name in names]
    return [each[0][1] if each else "" for each in every]


def test_a_pool_is_shared_out_and_may_be_used_up() -> None:
    static = gateway(name="c", addresses=[{"type": "IPAddress", "value": "192.0.2.1"}])
    objects = (CLASS, gateway(name="a"), gateway(name="b"), static, route(rule(), parentRefs=[{"name": "b"}]))
    found = settle(*objects, options=POOL)
    assert addresses(found, "a", "b", "c") == ["192.0.2.2", "", "192.0.2.1"]
    assert verdicts(found, "Gateway", "b")["Programmed"] == "!AddressNotAssigned"
    assert of_listeners(found, name="b")["http"]["Programmed"] == "!Pending"
    assert assessed(found, "HTTPRoute", "app").parents[0].verdicts[0].reason == "Pending"


def test_a_gateway_keeps_the_address_that_it_shows() -> None:
    shown = gateway(name="z") | {"status": {"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}, {}]}}
    found = settle(CLASS, gateway(name="a"), shown, gateway({"name": "broken"}, name="b"), options=POOL)
    assert addresses(found, "a", "z") == ["192.0.2.2", "192.0.2.1"]


def test_an_address_that_is_not_ours_is_reported() -> None:
    asked = gateway(addresses=[{"value": "198.51.100.1"}])
    want = {"Accepted": "Accepted", "Programmed": "!AddressNotUsable"}
    assert verdicts(settle(CLASS, asked), "Gateway", "gw") == want
    assert verdicts(settle(CLASS, asked, options=POOL), "Gateway", "gw") == want
    published = replace(OPTIONS, published_addresses=frozenset({"198.51.100.1"}))
    assert verdicts(settle(CLASS, asked, options=published), "Gateway", "gw") == ACCEPTED


def test_an_address_of_another_gateway_is_reported() -> None:
    both = [{"value": "192.0.2.1"}, {"value": "192.0.2.2"}]
    found = settle(CLASS, gateway(name="a", addresses=both), gateway(name="b", addresses=both[:1]), options=POOL)
    assert addresses(found, "a", "b") == ["192.0.2.1", "192.0.2.2"]
    assert [verdicts(found, "Gateway", name)["Programmed"] for name in "ab"] == ["!AddressNotUsable"] * 2


# ListenerSets.


def test_listeners_of_a_set_are_served_by_its_gateway() -> None:
    attached = route(rule(), parentRefs=[{"kind": "ListenerSet", "name": "set"}])
    found = settle(CLASS, gateway(**FROM_ALL), set_of(listener("x", 81)), attached, service())
    assert verdicts(found, "ListenerSet", "set") == ACCEPTED
    assert of_listeners(found, "ListenerSet", "set") == {"x": GOOD}
    assert assessed(found, "Gateway", "gw").listener_sets == 1
    assert [each.owner.kind for each in found.attachments.counts] == ["ListenerSet"]


def test_a_set_that_is_not_allowed_is_refused() -> None:
    found = settle(CLASS, gateway(), set_of(listener("x", 81)), set_of(name="odd", kind="Service"))
    assert verdicts(found, "ListenerSet", "set") == {"Accepted": "!NotAllowed", "Programmed": "!NotAllowed"}
    assert ObjectKey("ListenerSet", "default", "odd") not in found.reports


def test_a_refused_listener_of_a_set_does_not_refuse_its_siblings() -> None:
    """The TCP listener loses to the Gateway's; its HTTP sibling on that port has no conflict left."""
    one = gateway(listener("own", hostname="own.test"), allowedListeners={"namespaces": {"from": "Same"}})
    both = set_of(listener("http", hostname="set.test"), listener("tcp", 80, "TCP"))
    found = settle(CLASS, one, both)
    assert of_listeners(found, "ListenerSet", "set")["http"] == GOOD
    assert of_listeners(found, "ListenerSet", "set")["tcp"]["Conflicted"] == "ProtocolConflict"
    assert assessed(found, "Gateway", "gw").listener_sets == 1


def test_a_set_whose_listeners_all_conflict_is_refused() -> None:
    found = settle(CLASS, gateway(**FROM_ALL), set_of(listener("x")))
    assert verdicts(found, "ListenerSet", "set") == dict.fromkeys(("Accepted", "Programmed"), "!ListenersNotValid")
    assert of_listeners(found, "ListenerSet", "set")["x"]["Conflicted"] == "HostnameConflict"


def test_a_set_that_cannot_be_read_is_not_a_set() -> None:
    broken = make("ListenerSet", "set", spec={"parentRef": {"name": "gw"}, "listeners": "all"})
    found = settle(CLASS, gateway(**FROM_ALL), broken)
    assert assessed(found, "Gateway", "gw").listener_sets == 0


def test_with_assigned_hosts_others_are_skipped() -> None:
    own = make("Namespace", "default", namespace="", annotations={"apisix.apache.org/hosts": "a.test"})
    assigned = replace(OPTIONS, host_ownership="assigned")
    app = route(rule(), hostnames=["a.test", "b.test"])
    found = settle(CLASS, gateway(), own, app, service(), options=assigned)
    (body,) = (body for body in bodies(found).values() if str(body.get("name", "")).startswith("HTTPRoute"))
    assert body["hosts"] == ["a.test"]
    tcp = gateway(listener("tcp", 9000, "TCP"))
    found = settle(CLASS, tcp, own, route(rule(), kind="TCPRoute"), service(), options=assigned)
    assert not [path for path in bodies(found) if path.startswith("stream_routes")]


def test_routes_match_the_address_and_port_of_their_gateway() -> None:
    options = replace(POOL, listener_ports={80: 9080})
    entry = gateway(listener(), listener("plain", 8080))
    found = settle(CLASS, entry, route(rule()), service(), options=options)
    routes = {str(body["name"]).rsplit("_", 1)[1]: body for body in bodies(found).values() if "priority" in body}
    assert {name: body["vars"] for name, body in routes.items()} == {
        "http": [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "9080"]],
        "plain": [["server_addr", "==", "192.0.2.1"], ["server_port", "==", "8080"]],
    }
