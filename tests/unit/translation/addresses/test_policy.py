"""Internal addresses: which are rejected by the settings, in every notation, and which are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.internal_addresses import internal_addresses
from tests.unit.translation.objects import OPTIONS, fill, ingress, route, rule, service, slice_of, upstream
from tests.unit.translation.settling import bodies, prepare, settle
from translation.addresses.host_policy import admin_addresses, refused
from translation.core.options import Options

URLS = ("http://10.9.0.7:9180/apisix/admin", "https://apisix-admin.gateways.svc/apisix/admin")
STRICT = replace(OPTIONS, external_addresses="refuse-internal", admin_addresses=admin_addresses(URLS))

LOOPBACK, UNSPECIFIED, MULTICAST = "a loopback address", "the unspecified address", "a multicast address"
METADATA, LINK_LOCAL = "an address of cloud metadata", "a link-local address"
ADMIN = "an address of the Admin API"
CLOUD = f"{LINK_LOCAL}, which cloud metadata services use"
METADATA_NAME = "a name of cloud metadata"
LOOPBACK_NAME = "a name that resolves to a loopback address"
SPELT = "a name that resolves to the address it contains; write the address instead"
SINGLE = (
    "a name without a namespace, which resolves to a Service in the gateway's namespace; "
    "write <service>.<namespace>.svc"
)


@pytest.mark.parametrize(
    ("host", "want"),
    [
        *((host, LOOPBACK) for host in ("127.0.0.1", "127.9.8.7", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::1%eth0")),
        *((host, LOOPBACK) for host in ("127.1", "127.0.1", "2130706433", "017700000001", "0x7f000001", "0177.0.0.1")),
        *((host, LOOPBACK) for host in ("0x7f.1", "0x7F.0x0.0x0.0x1", "127.0.0.1.", "00000177.0.0.0x1")),
        *((host, LOOPBACK) for host in ("0127.0.0.1", "0127.00.00.01", "0" * 200 + "127.0.0.1", "127...1", "127.0..1")),
        *((host, LOOPBACK) for host in ("::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1")),
        *((host, LOOPBACK) for host in ("64:ff9b::127.0.0.1", "2002:7f00:1::", "2001:0:0102:0304::80ff:fffe")),
        *((host, UNSPECIFIED) for host in ("0.0.0.0", "0", "::", "0x0", "0.0.0.9", "0x", "[::]")),
        *((host, MULTICAST) for host in ("224.0.0.1", "ff02::1", "0xe0000001")),
        *((host, CLOUD) for host in ("169.254.169.254", "2852039166")),
        *((host, CLOUD) for host in ("::ffff:a9fe:a9fe", "0xa9.254.43518")),
        *((host, LINK_LOCAL) for host in ("fe80::1", "FE80::1%1", "febf::1")),
        *((host, METADATA) for host in ("fd00:ec2::254", "fd00:0ec2:0::0254", "100.100.100.200", "192.0.0.192")),
        *((host, "the gateway itself") for host in ("localhost", "LOCALHOST", "localhost.", "a.b.localhost")),
        *((host, ADMIN) for host in ("10.9.0.7", "::ffff:10.9.0.7", "10.589831", "0x0a090007", "010.9.0.7", "10.9..7")),
        *((host, ADMIN) for host in ("apisix-admin.gateways.svc", "apisix-admin.gateways", "apisix-admin")),
        *((host, ADMIN) for host in ("Apisix-Admin.gateways.svc.cluster.local.",)),
        *((host, METADATA_NAME) for host in ("metadata.google.internal", "METADATA.google.internal.", "instance-data")),
        *((host, "the gateway itself") for host in ("ip6-localhost", "ip6-loopback", "localhost.localdomain")),
        *((host, LOOPBACK_NAME) for host in ("localtest.me", "a.b.localtest.me", "lvh.me", "x.vcap.me.")),
        *(
            (host, SPELT)
            for host in (
                "127.0.0.1.nip.io",
                "app-7f000001.nip.io",
                "nip.io",
                "--1.sslip.io",
                "ip-10-0-0-1.ec2.internal",
            )
        ),
        *((host, SINGLE) for host in ("web", "apisix-etcd", "etcd.", "4294967296", "_x")),
        *((host, "neither a host name nor an IP address") for host in ("", "a b.c", "127。0。0。1", "a.b:80", ".")),
        *((host, "neither a host name nor an IP address") for host in ("127..1", "256.256.256.256", "1.2.3.4.5")),
        *(
            (host, "neither a host name nor an IP address")
            for host in ("0" * 250 + "127.0.0.1", "300.1", "a.9", "a.0x7f")
        ),
        ("255.255.255.255", "the broadcast address"),
        ("168.63.129.16", METADATA),
    ],
)
def test_internal_addresses_are_recognized_in_every_notation(host: str, want: str) -> None:
    assert refused(STRICT, host) == want
    assert refused(OPTIONS, host) == ""


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "8.8.8.8",
        "169.253.0.1",
        "2001:db8::1",
        "fd00::1",
        "::ffff:8.8.8.8",
        "2002:0808:0808::",
        "example.org",
        "localhost.example.org",
        "not.localtest.me.example.org",
        "xnip.io",
        "apisix-admin.other.svc",
        "08.0.0.1",
        "web.shop.svc.cluster.local",
        "a_b.example.org",
    ],
)
def test_other_addresses_and_names_are_let_through(host: str) -> None:
    assert refused(STRICT, host) == ""


def test_the_admin_api_is_refused_on_its_port_only() -> None:
    assert refused(STRICT, "10.9.0.7", 9180) == ADMIN
    assert refused(STRICT, "10.9.0.7", 8080) == ""
    assert refused(STRICT, "apisix-admin.gateways", 443) == ADMIN
    assert admin_addresses(["http://[::1]/apisix/admin"]) == {("::1", 80)}


LISTED = (
    "10.7.0.0/16",
    "fd00:7::/32",
    "192.0.2.7",
    "192.0.2.8:2379",
    "[2001:db8::8]:2379",
    "etcd.apisix.svc",
    "*.gateways.svc.cluster.local",
    "vault.corp.example:8200",
    "*.internal.example",
)
INTERNAL = replace(OPTIONS, internal=internal_addresses(LISTED))


@pytest.mark.parametrize(
    ("host", "port"),
    [
        *((host, None) for host in ("10.7.255.1", "0x0a070001", "::ffff:10.7.0.1", "fd00:7::1", "192.0.2.7")),
        *((host, 1) for host in ("10.7.0.1", "192.0.2.7", "etcd.apisix", "x.internal.example")),
        *((host, None) for host in ("192.0.2.8", "2001:db8:0::8", "[2001:db8::8]", "vault.corp.example")),
        *((host, 2379) for host in ("192.0.2.8", "3221225992", "[2001:DB8::8]")),
        *((host, None) for host in ("etcd.apisix.svc.cluster.local.", "Etcd.apisix.svc", "etcd.apisix", "etcd")),
        *((host, None) for host in ("etcd-0.etcd.apisix.svc.cluster.local", "etcd-0.etcd.apisix.svc")),
        *((host, None) for host in ("any.gateways.svc.cluster.local", "a.any.gateways.svc", "any.gateways")),
        *((host, None) for host in ("a.internal.example", "a.b.internal.example.")),
        ("vault.corp.example", 8200),
    ],
)
def test_listed_addresses_are_rejected_without_any_preset(host: str, port: int | None) -> None:
    assert refused(INTERNAL, host, port) == "an internal address"


@pytest.mark.parametrize(
    ("host", "port"),
    [
        *((host, None) for host in ("10.8.0.1", "fd00:8::1", "192.0.2.9", "internal.example", "corp.example", "x.y")),
        *((host, None) for host in ("etcd.apisix.example", "xetcd.apisix.svc", "gateways.svc.cluster.local", "web")),
        *((host, 80) for host in ("192.0.2.8", "2001:db8::8", "vault.corp.example")),
        ("127.0.0.1", None),
    ],
)
def test_other_addresses_are_allowed(host: str, port: int | None) -> None:
    assert refused(INTERNAL, host, port) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("10.7.0.1/16", "'10.7.0.1/16' is an address inside a network; write 10.7.0.0/16 or 10.7.0.1"),
        ("10.7.0.0/33", "'10.7.0.0/33' is not a network; write a network (10.1.0.0/16), an address"),
        ("http://etcd:2379", "'http://etcd:2379' is not a network; write"),
        ("etcd:0", "'etcd:0' has no port from 1 to 65535 after the colon; write"),
        ("etcd:65536", "has no port"),
        ("etcd:x", "has no port"),
        ("a b", "'a b' is neither a network nor a host; write"),
        ("*", "neither a network nor a host"),
        ("", "neither a network nor a host"),
    ],
)
def test_an_entry_that_is_not_an_address_is_reported_with_the_format(text: str, want: str) -> None:
    with pytest.raises(ValueError, match="write") as caught:
        internal_addresses([text])
    assert want in str(caught.value)


def test_listed_address_is_refused_on_its_port_only_if_a_node_has_one() -> None:
    def reported(name: str, port: int) -> list[str]:
        raw = upstream("ext", externalNodes=[{"type": "Domain", "name": name, "port": port}])
        found = settle(raw, referring(), options=INTERNAL)
        return [str(item) for item in found.reports[ObjectKey("ApisixUpstream", "default", "ext")].problems]

    assert reported("192.0.2.8", 80) == []
    assert reported("192.0.2.8", 2379) == [
        "spec.externalNodes[0].name: '192.0.2.8' is an internal address, which is rejected by the controller's setting "
        "kubernetes.internal_addresses; use another host"
    ]


def node(name: str) -> JsonObject:
    return upstream("ext", externalNodes=[{"type": "Domain", "name": name}])


def referring() -> JsonObject:
    return route({**rule(), "backends": [], "upstreams": [{"name": "ext"}]})


MESSAGE = (
    "which is rejected by the controller's setting kubernetes.external_addresses: refuse-internal; use another host"
)


def test_external_node_is_refused_and_its_route_with_it() -> None:
    found = settle(node("169.254.169.254"), referring(), options=STRICT)
    (problem,) = found.reports[ObjectKey("ApisixUpstream", "default", "ext")].problems
    assert str(problem) == (
        "spec.externalNodes[0].name: '169.254.169.254' is a link-local address, which cloud metadata services use, "
        + MESSAGE
    )
    (problem,) = found.reports[ObjectKey("ApisixRoute", "default", "route")].problems
    assert problem.code == "AddressRefused"
    assert bodies(found) == {}
    assert len(bodies(settle(node("169.254.169.254"), referring()))) == 2


@pytest.mark.parametrize(
    "name", ["localhost:8080", "127.0.0.1", "[::1]:80", "apisix-admin.gateways.svc.cluster.local:443"]
)
def test_name_for_dns_discovery_is_refused(name: str) -> None:
    raw = upstream("ext", discovery={"type": "dns", "serviceName": name})
    found = settle(raw, referring(), options=STRICT)
    (problem,) = found.reports[ObjectKey("ApisixUpstream", "default", "ext")].problems
    assert (problem.code, problem.path) == ("AddressRefused", "spec.discovery.serviceName")
    other = upstream("ext", discovery={"type": "consul", "serviceName": name})
    assert len(bodies(settle(other, referring()))) == 2


def outside(host: str) -> JsonObject:
    return service("web", type="ExternalName", externalName=host, ports=[])


@pytest.mark.parametrize(
    ("kind", "owner", "path"),
    [
        ("ApisixRoute", route(rule()), "spec.http[0].backends[0].serviceName"),
        (
            "Ingress",
            ingress(defaultBackend={"service": {"name": "web", "port": {"number": 80}}}),
            "spec.defaultBackend.service.name",
        ),
        (
            "ApisixUpstream",
            upstream("ext", externalNodes=[{"type": "Service", "name": "web"}]),
            "spec.externalNodes[0].name",
        ),
    ],
)
def test_external_name_of_a_service_is_refused_where_it_is_referred_to(kind: str, owner: JsonObject, path: str) -> None:
    found = settle(outside("127.0.0.1"), owner, options=STRICT)
    (problem,) = found.reports[ObjectKey(kind, "default", owner["metadata"]["name"])].problems
    assert str(problem) == (
        f"{path}: Service default/web: spec.externalName: '127.0.0.1' is a loopback address, {MESSAGE}"
    )
    assert problem.origin == ObjectKey("Service", "default", "web")
    assert bodies(found) == {}


def test_service_that_is_turned_to_the_inside_later_leads_nowhere() -> None:
    found, loop = prepare(outside("example.org"), route(rule()), options=STRICT)
    loop.settle()
    nodes = [body["nodes"] for key, body in bodies(found).items() if key.startswith("upstreams")]
    assert nodes == [[{"host": "example.org", "port": 80, "weight": 100}]]
    fill(found, [outside("2130706433")])
    loop.settle()
    assert [body["nodes"] for key, body in bodies(found).items() if key.startswith("upstreams")] == [[]]
    assert len(bodies(found)) == 2


def test_endpoints_that_lead_inside_are_skipped() -> None:
    def nodes(options: object, *found: JsonObject) -> list[str]:
        world = settle(service(), route(rule()), *found, options=options)  # type: ignore[arg-type]
        (upstream,) = (body for key, body in bodies(world).items() if key.startswith("upstreams"))
        return [item["host"] for item in upstream["nodes"]]

    slices = (
        slice_of(["10.1.0.1", "169.254.1.1"]),
        slice_of(["localhost", "example.org"], name="web-2", addressType="FQDN"),
        slice_of(["10.9.0.7"], name="web-3", port=9180),
        slice_of(["10.9.0.7"], name="web-4", port=8080),
    )
    assert nodes(STRICT, *slices) == ["10.1.0.1", "10.9.0.7", "example.org"]
    assert len(nodes(OPTIONS, *slices)) == 6


def test_what_a_setting_refuses_is_not_held_after_a_restart() -> None:
    allowed, refusing = (settle(node("127.0.0.1"), referring(), options=options) for options in (OPTIONS, STRICT))
    there = allowed.desired.records("default")
    assert {key.kind for key in there} == {"routes", "upstreams"}
    assert not any(refusing.desired.is_held(key, record.name) for key, record in there.items())


def test_health_check_is_not_a_way_to_a_port_that_is_listed() -> None:
    def reported(port: int, options: Options) -> list[str]:
        check = {"type": "tcp", "port": port, "healthy": {"interval": "1s"}}
        raw = upstream("ext", externalNodes=[{"type": "Domain", "name": "192.0.2.8"}], healthCheck={"active": check})
        found = settle(raw, referring(), options=options)
        return [str(item) for item in found.reports[ObjectKey("ApisixUpstream", "default", "ext")].problems]

    want = "spec.healthCheck.active.port: {} is a port of an internal address; use another one"
    assert reported(2379, INTERNAL) == [want.format(2379)]
    assert reported(80, INTERNAL) == reported(2379, OPTIONS) == reported(9180, STRICT) == []
