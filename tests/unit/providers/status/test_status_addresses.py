"""Which addresses an Ingress shows, and when it is checked. Golden cases have the rules of 1.8."""

from typing import Any

import pytest

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import IngressClass, Service
from apisix_ingress.state.world import Report, World
from providers.status.status_addresses import AUTO, Addresses, published
from tests.factories import make_custom, make_key, make_service
from tests.relisting import relist

SHOP = make_key("shop", kind="Ingress")
GATEWAY = "infra/gw"


def make_world(*services: Service) -> World:
    """Return a complete world with one Ingress of this controller."""
    world = World([RESOURCES["Service"], RESOURCES["Ingress"]])
    relist(world.stores["Service"], services)
    relist(world.stores["Ingress"], [make_custom("shop", kind="Ingress")])
    world.reports[SHOP] = Report(1)
    world.reports[make_key("web")] = Report(1)
    return world


def make_class(proxy: ObjectKey) -> IngressClass:
    return IngressClass(make_custom("own", kind="IngressClass", namespace="").meta, proxy=proxy)


def make_gateway(*addresses: str, **fields: Any) -> Service:
    pairs = tuple((address, "") for address in addresses)
    return make_service("gw", namespace="infra", type="LoadBalancer", load_balancer=pairs, **fields)


def test_an_ip_takes_precedence_over_the_host_name_of_an_entry() -> None:
    service = make_service(type="LoadBalancer", load_balancer=(("192.0.2.1", "a.example.com"), ("", "b.example.com")))
    assert published(service) == [{"ip": "192.0.2.1"}, {"hostname": "b.example.com"}]


def test_external_ips_wait_for_the_load_balancer() -> None:
    assert published(make_gateway(external_ips=("198.51.100.1",))) == []
    assert published(make_gateway("2001:db8::1", external_ips=("198.51.100.1",))) == [
        {"ip": "2001:db8::1"},
        {"ip": "198.51.100.1"},
    ]


def test_without_configuration_no_ingress_is_changed() -> None:
    assert Addresses(make_world(), "", []).of(SHOP) is None


def test_kinds_with_addresses() -> None:
    addresses = Addresses(make_world(), "", ["192.0.2.1"])
    got = {kind for kind in RESOURCES if addresses.of(ObjectKey(kind, "shop", "web")) is not None}
    assert got == {"Ingress", "ApisixRoute", "ApisixTls"}


def test_an_ingress_of_another_class_gets_no_status() -> None:
    assert Addresses(make_world(), "", ["192.0.2.1"]).of(make_key("other", kind="Ingress")) == []


def test_a_deleted_service_is_no_longer_shown() -> None:
    assert Addresses(make_world(), GATEWAY, []).of(SHOP) == []
    assert Addresses(make_world(make_gateway("192.0.2.1")), GATEWAY, []).of(SHOP) == [{"ip": "192.0.2.1"}]


def test_nothing_is_reported_before_every_kind_is_listed() -> None:
    world = make_world()
    world.stores["Service"].synced = False
    assert Addresses(world, GATEWAY, []).of(SHOP) is None


def test_fixed_addresses_stand_in_for_the_service() -> None:
    addresses = Addresses(make_world(make_gateway("192.0.2.1")), GATEWAY, ["lb.example.com"])
    assert addresses.of(SHOP) == [{"hostname": "lb.example.com"}]


def test_what_is_published_is_reported_once_all_is_known() -> None:
    world = make_world(make_gateway("192.0.2.1"))
    assert Addresses(world, GATEWAY, []).published() == [{"ip": "192.0.2.1"}]
    assert Addresses(world, GATEWAY, ["lb.example.com"]).published() == [{"hostname": "lb.example.com"}]
    assert Addresses(world, "", []).published() == []
    world.stores["Service"].synced = False
    assert Addresses(world, GATEWAY, []).published() == []


def test_a_change_of_the_service_queues_only_handled_objects() -> None:
    world = make_world()
    woken: list[ObjectKey] = []
    Addresses(world, GATEWAY, []).follow(woken.append)
    store = world.stores["Service"]
    store.set(make_service("web"))
    assert woken == []
    store.set(make_gateway())
    store.set(make_gateway("192.0.2.1"))
    store.set(make_gateway("192.0.2.1"))
    store.delete(make_gateway().meta.key)
    assert woken == [SHOP, make_key("web")] * 3


def test_fixed_addresses_follow_no_service() -> None:
    world = make_world()
    woken: list[ObjectKey] = []
    Addresses(world, GATEWAY, ["192.0.2.1"]).follow(woken.append)
    world.stores["Service"].set(make_gateway("192.0.2.1"))
    assert woken == []


def make_proxied(spec: dict[str, Any], *services: Service) -> World:
    """Return a complete world with an Ingress whose class refers to a GatewayProxy."""
    world = World(RESOURCES[kind] for kind in ("Service", "Ingress", "IngressClass", "GatewayProxy"))
    proxy = make_custom("proxy", kind="GatewayProxy", namespace="infra", spec=spec)
    ingress = make_custom("shop", kind="Ingress", spec={"ingressClassName": "own"})
    relist(world.stores["Service"], services)
    relist(world.stores["Ingress"], [ingress])
    relist(world.stores["IngressClass"], [make_class(proxy.meta.key)])
    relist(world.stores["GatewayProxy"], [proxy])
    world.reports[SHOP] = Report(1)
    return world


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"statusAddress": ["192.0.2.9", "lb.example.com"]}, [{"ip": "192.0.2.9"}, {"hostname": "lb.example.com"}]),
        ({"statusAddress": ["192.0.2.9"], "publishService": "infra/gw"}, [{"ip": "192.0.2.9"}]),
        ({"publishService": "infra/gw"}, [{"ip": "192.0.2.1"}]),
        ({"publishService": "gw"}, []),
        ({"publishService": "infra/missing"}, []),
        ({}, [{"ip": "198.51.100.7"}]),
        ({"statusAddress": 1}, [{"ip": "198.51.100.7"}]),
    ],
)
def test_the_gateway_proxy_of_a_class_determines_the_addresses(spec: dict[str, Any], shown: list[Any]) -> None:
    addresses = Addresses(make_proxied(spec, make_gateway("192.0.2.1")), "", ["198.51.100.7"])
    assert addresses.of(SHOP) == shown


def test_a_service_without_namespace_is_that_of_the_ingress() -> None:
    service = make_service("gw", type="LoadBalancer", load_balancer=(("192.0.2.2", ""),))
    assert Addresses(make_proxied({"publishService": "gw"}, service), "", []).of(SHOP) == [{"ip": "192.0.2.2"}]


def test_a_service_that_a_gateway_proxy_publishes_is_followed() -> None:
    world = make_proxied({"publishService": "infra/gw"})
    woken: list[ObjectKey] = []
    Addresses(world, "", []).follow(woken.append)
    world.stores["Service"].set(make_service("web"))
    assert woken == []
    world.stores["Service"].set(make_gateway("192.0.2.1"))
    assert woken == [SHOP]


def make_found(*services: Service) -> tuple[World, Addresses]:
    world = make_world(*services)
    return world, Addresses(world, AUTO, [], namespaces={"infra"})


def test_auto_publishes_the_load_balancer_near_the_admin_api() -> None:
    other = make_service("other", namespace="shop", type="LoadBalancer", load_balancer=(("192.0.2.9", ""),))
    _, found = make_found(make_gateway("192.0.2.1"), make_service("admin", namespace="infra"), other)
    assert found.of(SHOP) == [{"ip": "192.0.2.1"}]


def test_auto_prefers_a_gateway_and_publishes_nothing_in_doubt() -> None:
    pair = make_service("my-gateway", namespace="infra", type="LoadBalancer", load_balancer=(("192.0.2.2", ""),))
    assert make_found(make_gateway("192.0.2.1"), pair)[1].of(SHOP) == [{"ip": "192.0.2.2"}]
    second = make_service("dashboard", namespace="infra", type="LoadBalancer")
    assert make_found(make_gateway("192.0.2.1"), second)[1].of(SHOP) is None
    assert make_found()[1].of(SHOP) is None


def test_auto_follows_created_and_deleted_services() -> None:
    world, found = make_found()
    woken: list[ObjectKey] = []
    found.follow(woken.append)
    world.stores["Service"].set(make_service("admin", namespace="infra"))
    assert (woken, found.of(SHOP)) == ([], None)
    world.stores["Service"].set(make_gateway("192.0.2.1"))
    assert (woken, found.of(SHOP)) == ([SHOP, make_key("web")], [{"ip": "192.0.2.1"}])
    world.stores["Service"].set(make_gateway("192.0.2.7"))
    assert (woken, found.of(SHOP)) == ([SHOP, make_key("web")] * 2, [{"ip": "192.0.2.7"}])
