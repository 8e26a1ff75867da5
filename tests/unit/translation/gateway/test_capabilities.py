"""What depends on the version of gateways: TLS passthrough and verification of backends, from APISIX 3.19 on."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import (
    CLASS,
    assessed,
    gateway,
    listener,
    of_listeners,
    of_parents,
    reported,
    route,
    rule,
    secure,
)
from tests.unit.translation.objects import make, pem, secret, service
from tests.unit.translation.settling import bodies, prepare

BACKEND = service(
    ports=[{"port": 80, "name": "https"}, {"port": 81, "name": "grpc", "appProtocol": "kubernetes.io/h2c"}]
)
BUNDLE = {
    "kind": CA_BUNDLE,
    "metadata": {"name": "ca", "namespace": "default"},
    "data": {"ca.crt": pem(1).certificate},
}


def policy(**validation: Any) -> JsonObject:
    refs = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    target = {"group": "", "kind": "Service", "name": "web"}
    return make(
        "BackendTLSPolicy",
        "tls",
        spec={
            "targetRefs": [target],
            "validation": {"hostname": "backend.test", "caCertificateRefs": refs, **validation},
        },
    )


def settled(*objects: JsonObject, versions: tuple[str, ...] = ("APISIX/3.19.0",)) -> World:
    """Return what gateways should have after their versions were learned one after another."""
    found, loop = prepare(CLASS, BACKEND, BUNDLE, *objects)
    loop.settle()
    for number, version in enumerate(versions):
        found.gateway_versions.learn(f"c{number}", version)
        loop.settle()
    return found


def records(found: World, kind: str) -> list[JsonObject]:
    return [dict(body) for path, body in bodies(found).items() if path.startswith(f"{kind}/")]


def passthrough(name: str = "tls") -> JsonObject:
    return listener(name, 9443, "TLS", tls={"mode": "Passthrough"})


def test_tls_passes_through_gateways_that_can_do_it() -> None:
    found = settled(gateway(passthrough()), route(rule(), kind="TLSRoute", hostnames=["a.test"]))
    assert of_listeners(found)["tls"]["Programmed"] == "Programmed"
    assert of_parents(found, "TLSRoute") == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
    (body,) = records(found, "stream_routes")
    assert (body["sni"], body["server_port"], body["tls_passthrough"]) == ("a.test", 9443, True)
    assert records(found, "ssls") == []


def test_listeners_that_end_tls_stay_beside_passthrough() -> None:
    made = pem(2)
    cert = secret("cert", tls__crt=made.certificate, tls__key=made.key)
    ending = listener("end", 9444, "TLS", tls={"certificateRefs": [{"name": "cert"}]})
    entry = gateway(passthrough(), secure("https", "cert"), ending)
    found = settled(entry, cert, route(rule(), kind="TLSRoute", hostnames=["a.test"]))
    flags = {body["server_port"]: "tls_passthrough" in body for body in records(found, "stream_routes")}
    assert flags == {9443: True, 9444: False}


@pytest.mark.parametrize("versions", [("APISIX/3.18.0",), ("APISIX/3.19.0", "APISIX/3.18.0"), ("openresty",)])
def test_older_gateways_get_neither(versions: tuple[str, ...]) -> None:
    found = settled(
        gateway(passthrough(), listener()),
        policy(),
        route(rule()),
        route(rule(), kind="TLSRoute", hostnames=["a.test"]),
        versions=versions,
    )
    assert of_listeners(found)["tls"]["Accepted"] == "!UnsupportedValue"
    assert records(found, "stream_routes") == []
    assert of_parents(found)[0]["ResolvedRefs"] == "!UnsupportedProtocol"
    (ancestor,) = assessed(found, "BackendTLSPolicy", "tls").parents
    assert reported(ancestor.verdicts)["Accepted"] == "!Invalid"
    assert not assessed(found, "Gateway", "gw").is_pending


def test_before_gateways_were_read_no_status_depends_on_their_version() -> None:
    objects = (gateway(passthrough(), listener()), policy(), route(rule()), route(rule(service="no"), name="plain"))
    found = settled(*objects, versions=())
    kinds = (("Gateway", "gw"), ("HTTPRoute", "app"), ("BackendTLSPolicy", "tls"), ("GatewayClass", "apisix"))
    pending = [
        assessed(found, kind, name, "" if kind == "GatewayClass" else "default").is_pending for kind, name in kinds
    ]
    assert pending == [True, True, True, False]
    assert "upstream_id" not in next(body for body in records(found, "routes") if "_app_" in str(body["name"]))


def test_backends_of_a_policy_are_verified() -> None:
    found = settled(gateway(), policy(), route(rule()))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
    (ancestor,) = assessed(found, "BackendTLSPolicy", "tls").parents
    assert reported(ancestor.verdicts) == {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}
    (upstream,) = records(found, "upstreams")
    (record,) = records(found, "routes")
    assert record["upstream_id"] == upstream["id"]
    assert (upstream["scheme"], upstream["pass_host"], upstream["upstream_host"]) == (
        "https",
        "rewrite",
        "backend.test",
    )
    assert upstream["tls"] == {"verify": True, "ca_certs": [pem(1).certificate]}


def test_grpc_backends_are_verified_with_the_system_cas() -> None:
    wellknown = policy(caCertificateRefs=[], wellKnownCACertificates="System")
    found = settled(gateway(), wellknown, route({"backendRefs": [{"name": "web", "port": 81}]}))
    (upstream,) = records(found, "upstreams")
    assert (upstream["scheme"], upstream["tls"]) == ("grpcs", {"verify": True})


@pytest.mark.parametrize(
    "validation",
    [
        {"subjectAltNames": [{"type": "Hostname", "hostname": "x.test"}]},
        {"caCertificateRefs": [], "wellKnownCACertificates": "Other"},
    ],
)
def test_what_gateways_cannot_verify_is_refused(validation: JsonObject) -> None:
    found = settled(gateway(), policy(**validation), route(rule()))
    assert of_parents(found)[0]["ResolvedRefs"] == "!UnsupportedProtocol"
    (ancestor,) = assessed(found, "BackendTLSPolicy", "tls").parents
    assert reported(ancestor.verdicts)["Accepted"] == "!Invalid"


def test_backends_of_streams_are_never_verified() -> None:
    found = settled(gateway(listener("tcp", 9000, "TCP")), policy(), route(rule(), kind="TCPRoute"))
    assert of_parents(found, "TCPRoute")[0]["ResolvedRefs"] == "!UnsupportedProtocol"
    assert records(found, "stream_routes") == []


def test_an_upgrade_turns_them_on() -> None:
    found, loop = prepare(CLASS, BACKEND, BUNDLE, gateway(passthrough(), listener()), policy(), route(rule()))
    for version, want in (("APISIX/3.18.0", "!UnsupportedValue"), ("APISIX/3.19.0", "Accepted")):
        found.gateway_versions.learn("default", version)
        loop.settle()
        assert of_listeners(found)["tls"]["Accepted"] == want
    assert of_parents(found)[0]["ResolvedRefs"] == "ResolvedRefs"


def test_a_version_on_which_nothing_depends_is_not_reported() -> None:
    """The takeover of a cluster does not wait for translations then."""
    plain, loop = prepare(CLASS, BACKEND, gateway(), route(rule()))
    loop.settle()
    assert not plain.learn_version("default", "APISIX/3.19.0")
    found, loop = prepare(CLASS, BACKEND, gateway(passthrough()))
    loop.settle()
    assert [found.learn_version("default", "APISIX/3.19.0") for _ in range(2)] == [True, False]
