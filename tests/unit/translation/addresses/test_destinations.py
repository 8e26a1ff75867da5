"""Hosts of backends: names and addresses of other namespaces need a grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.internal_addresses import internal_addresses
from apisix_ingress.state.view import View
from tests.unit.translation.addresses.victims import (
    EXT,
    NODE_IP,
    STRICT,
    VICTIM,
    VICTIM_IP,
    VICTIM_POD,
    endpoints,
    grant,
    namespace,
    outside,
    pod,
    reported,
)
from tests.unit.translation.objects import OPTIONS, fill, make, route, rule, service, slice_of, upstream
from tests.unit.translation.settling import bodies, prepare, settle
from translation.addresses import destinations
from translation.core.context import MOST_FOLLOWED
from translation.core.options import Options
from translation.upstreams.endpoints import listed_endpoints


def node(name: str, *, port: int = 80) -> JsonObject:
    return upstream("ext", externalNodes=[{"type": "Domain", "name": name, "port": port}])


def referring() -> JsonObject:
    return route({**rule(), "backends": [], "upstreams": [{"name": "ext"}]})


def tried(host: str, *more: JsonObject, options: Options = STRICT) -> list[str]:
    """Return the problems of an external node, and check that it is published only without problems."""
    found = settle(*VICTIM, *more, node(host), referring(), options=options)
    assert bool(bodies(found)) == (not reported(found))
    return reported(found)


OTHER_NAMES = (
    *("web.victim.svc.cluster.local", "web.victim.svc", "web.victim", "absent.victim.svc", "absent.victim"),
    *("web-0.web.victim.svc.cluster.local", "web-0.web.victim.svc", "web-0.web.victim", "x.y.web.victim.svc"),
    *("10-1-0-9.victim.pod.cluster.local", "10-9-9-9.victim.pod", "10-9-9-9.gone.pod", "web.gone.svc"),
    *("etcd-0.etcd-headless", "etcd-headless.apisix"),
    *("web.victim.svc.clusterset.local", "web-0.web.victim.svc.k8s.example", "10-1-0-9.victim.pod.k8s.example"),
)


OTHER_ADDRESSES = (VICTIM_POD, VICTIM_IP, "fd00:9::9", "fd00:1:0::9", "::ffff:10.1.0.9", "0x0a010009", NODE_IP)


@pytest.mark.parametrize("host", OTHER_NAMES)
def test_name_of_another_namespace_needs_a_grant(host: str) -> None:
    (problem,) = tried(host)
    assert problem == (
        f"spec.externalNodes[0].name: {host!r} is a name in another namespace, which needs a ReferenceGrant there; "
        "add one, or use another host"
    )


@pytest.mark.parametrize("host", OTHER_ADDRESSES)
def test_an_address_of_another_namespace_needs_a_grant_and_its_owner_stays_unknown(host: str) -> None:
    (problem,) = tried(host)
    assert "is an address in another namespace, which needs a ReferenceGrant there" in problem
    assert "victim" not in problem


@pytest.mark.parametrize("host", [*OTHER_NAMES, *OTHER_ADDRESSES])
def test_without_the_setting_every_host_is_as_before(host: str) -> None:
    assert tried(host, options=OPTIONS) == []
    assert tried(host, options=replace(OPTIONS, cross_namespace="grant")) == []


@pytest.mark.parametrize("host", ["web.victim.svc", VICTIM_IP, "web.victim", "web-0.web.victim"])
def test_grant_for_the_service_lets_its_names_and_addresses_pass(host: str) -> None:
    assert tried(host, grant("ApisixUpstream", "web")) == []
    assert tried(host, grant("ApisixUpstream")) == []
    assert tried(host, grant("ApisixUpstream", "other"))
    assert tried(host, grant("ApisixRoute"))


@pytest.mark.parametrize("host", [VICTIM_POD, "10-1-0-9.victim.pod"])
def test_address_of_a_pod_needs_a_grant_for_every_service(host: str) -> None:
    assert tried(host, grant("ApisixUpstream")) == []
    assert tried(host, grant("ApisixUpstream", "web"))


def test_the_address_of_a_node_needs_the_grants_of_all_namespaces_on_it() -> None:
    assert tried(NODE_IP, grant("ApisixUpstream"))
    assert tried(NODE_IP, grant("ApisixUpstream"), grant("ApisixUpstream", of="kube-system")) == []


def test_with_free_references_names_and_addresses_of_other_namespaces_are_free() -> None:
    free = replace(STRICT, cross_namespace="allow")
    assert all(tried(host, options=free) == [] for host in (*OTHER_NAMES, *OTHER_ADDRESSES))


@pytest.mark.parametrize(
    "host",
    [
        *("web.default.svc.cluster.local", "web.default.svc", "web.default", "absent.default.svc", "10.0.0.1"),
        *("10.1.0.1", "10-1-0-1.default.pod", "example.org", "shop.example.org", "api.web.victims", "203.0.113.7"),
        *("example.victim.org", "a.b.victim.example", "absent.victim.svc.example.org", "x.shop.pod.example.org"),
    ],
)
def test_own_names_and_names_unknown_to_the_cluster_are_allowed(host: str) -> None:
    assert tried(host, service(), slice_of(["10.1.0.1"]), pod("own", "10.1.0.1")) == []


@pytest.mark.parametrize(
    "host", ["kubernetes.default.svc", "kubernetes.default", "KUBERNETES.default.svc", "10.0.0.254", "192.0.2.100"]
)
def test_the_api_server_is_never_a_backend(host: str) -> None:
    (problem,) = tried(host.lower())
    assert "is the API server, which is rejected by the controller's setting kubernetes.external_addresses" in problem


@pytest.mark.parametrize("host", ["cluster.local", "svc.cluster.local", "victim.svc.cluster.local", "x.cluster.local"])
def test_a_name_of_the_cluster_domain_without_a_service_is_refused(host: str) -> None:
    (problem,) = tried(host)
    assert "belongs to neither a Service nor a Pod; write <service>.<namespace>.svc" in problem


@pytest.mark.parametrize("host", ["127-0-0-1.default.pod", "169-254-169-254.default.pod.cluster.local", "x.web.pod"])
def test_name_of_a_pod_is_judged_by_the_address_that_it_spells(host: str) -> None:
    assert tried(host)


def test_name_of_a_pod_may_not_spell_an_address_elsewhere() -> None:
    (problem,) = tried("10-1-0-9.default.pod")
    assert "an address in another namespace" in problem


def test_cluster_domain_is_the_one_of_the_settings() -> None:
    other = replace(STRICT, internal=internal_addresses((), "corp.example"))
    assert tried("web.victim.svc.corp.example", options=other)
    assert tried("www.corp.example", options=other)
    # An invalid setting does not bypass it.
    assert tried("web.victim.svc.cluster.local", options=other)
    assert tried("absent.victim.svc.cluster.local", options=other) == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "web.victim.svc", VICTIM_POD, "metadata.google.internal", "chain.default"]
)
def test_own_service_of_type_external_name_is_followed(host: str) -> None:
    more = (outside(host), outside("localhost", "chain"))
    (problem,) = tried("out.default.svc", *more)
    assert "is Service default/out, which leads" in problem
    assert tried("out.default.svc", outside("example.org")) == []


def test_circle_of_external_names_and_a_long_chain_come_to_an_end() -> None:
    assert tried("a.default", outside("b.default", "a"), outside("a.default", "b")) == []
    chain = [outside(f"s{number + 1}.default.svc", f"s{number}") for number in range(3000)]
    (problem,) = tried("s0.default", *chain)
    assert "through more than" in problem


def test_a_cycle_hides_nothing_from_later_lookups() -> None:
    def of_a(name: str, kind: str, address: str) -> JsonObject:
        labels, found = {"kubernetes.io/service-name": "a"}, [{"addresses": [address]}]
        return make("EndpointSlice", name, labels=labels, addressType=kind, endpoints=found, ports=[{"port": 80}])

    circle = (service("a", clusterIP="10.0.0.2"), of_a("a-1", "FQDN", "b.default.svc"), outside("a.default.svc", "b"))
    hosts = slice_of(["a.default.svc", "b.default.svc"], addressType="FQDN")
    assert endpoints(*circle, hosts) == ["a.default.svc", "b.default.svc"]
    assert endpoints(*circle, hosts, of_a("a-2", "IPv4", VICTIM_POD)) == []


@pytest.mark.parametrize("host", ["web.default.svc", "10.0.0.1"])
@pytest.mark.parametrize("address", [VICTIM_POD, VICTIM_IP])
def test_own_service_with_endpoints_elsewhere_is_refused_by_name_and_address(host: str, address: str) -> None:
    (problem,) = tried(host, service(), slice_of([address]))
    assert "which leads to an address in another namespace" in problem


def test_a_host_lost_to_another_owner_is_withdrawn_until_it_returns() -> None:
    found, loop = prepare(*VICTIM, node("10.1.7.7"), referring(), options=STRICT)
    loop.settle()
    assert len(bodies(found)) == 2
    fill(found, [pod("late", "10.1.7.7", of="victim")])
    loop.settle()
    assert bodies(found) == {}
    fill(found, [pod("late", "10.1.7.7", of="victim", phase="Succeeded")])
    loop.settle()
    assert len(bodies(found)) == 2
    fill(found, [service("late", namespace="victim", clusterIP="10.1.7.7")])
    loop.settle()
    assert bodies(found) == {}


def test_a_name_is_valid_once_its_namespace_exists() -> None:
    found, loop = prepare(*VICTIM, node("api.shop"), referring(), options=STRICT)
    loop.settle()
    assert len(bodies(found)) == 2
    fill(found, [namespace("shop")])
    loop.settle()
    assert bodies(found) == {}


def test_removing_a_grant_withdraws_its_records() -> None:
    found, loop = prepare(*VICTIM, grant("ApisixUpstream"), node("web.victim.svc"), referring(), options=STRICT)
    loop.settle()
    assert len(bodies(found)) == 2
    found.stores["ReferenceGrant"].delete(ObjectKey("ReferenceGrant", "victim", "may-apisixupstream"))
    loop.settle()
    assert bodies(found) == {}


@pytest.mark.parametrize("kind", ["kubernetes", "consul", "nacos"])
def test_only_dns_finds_nodes_if_internal_addresses_are_refused(kind: str) -> None:
    raw = upstream("ext", discovery={"type": kind, "serviceName": "victim/web:p80"})
    found = settle(raw, referring(), options=STRICT)
    (problem,) = reported(found)
    assert problem == (
        f"spec.discovery.type: {kind!r} discovers nodes that cannot be checked, which is rejected by the controller's "
        "setting kubernetes.external_addresses: refuse-internal; use dns, or backends"
    )
    assert bodies(found) == {}
    assert len(bodies(settle(raw, referring()))) == 2


@pytest.mark.parametrize(
    "name", ["web.victim.svc:80", "web.victim.svc.cluster.local", "web.default.svc:80", "api.shop"]
)
def test_a_cluster_name_is_invalid_for_dns_discovery(name: str) -> None:
    raw = upstream("ext", discovery={"type": "dns", "serviceName": name})
    found, loop = prepare(*VICTIM, service(), raw, referring(), options=STRICT)
    loop.settle()
    fill(found, [namespace("shop")])
    loop.settle()
    (problem,) = reported(found)
    assert problem.startswith("spec.discovery.serviceName: ")
    assert problem.endswith("is a name of the Kubernetes cluster; use its Service in backends")
    assert bodies(found) == {}


@pytest.mark.parametrize("host", [VICTIM_POD, VICTIM_IP])
def test_address_for_dns_discovery_is_judged_as_any_other(host: str) -> None:
    raw = upstream("ext", discovery={"type": "dns", "serviceName": host})
    (problem,) = reported(settle(*VICTIM, raw, referring(), options=STRICT))
    assert "an address in another namespace" in problem


@pytest.mark.parametrize("hidden", ["10.1.7.7", "web.default.svc"])
def test_last_good_records_of_a_broken_object_leave_with_their_ground(hidden: str) -> None:
    slices = slice_of(["10.1.7.7"])
    found, loop = prepare(*VICTIM, service(), slices, node(hidden), referring(), options=STRICT)
    loop.settle()
    assert len(bodies(found)) == 2
    fill(found, [upstream("ext", externalNodes="broken")])
    loop.settle()
    assert len(bodies(found)) == 2
    fill(found, [pod("late", "10.1.7.7", of="victim")])
    loop.settle()
    assert bodies(found) == {}


def test_each_service_is_examined_once_however_many_nodes_refer_to_it() -> None:
    def reads(count: int) -> int:
        names: Iterable[JsonObject] = (
            {"type": "Domain", "name": "web.default.svc", "port": 1 + number} for number in range(count)
        )
        objects = (service(), slice_of([f"10.1.{number}.1" for number in range(100)]))
        found = settle(*VICTIM, *objects, upstream("ext", externalNodes=list(names)), referring(), options=STRICT)
        return len(found.dependents.reads_of(EXT))

    assert reads(1) == reads(200)


def test_work_for_services_that_hosts_lead_to_is_bounded() -> None:
    many = [f"10.{number // 65536 + 2}.{number // 256 % 256}.{number % 256}" for number in range(MOST_FOLLOWED + 1)]
    (problem,) = tried("web.default.svc", service(), slice_of(many))
    assert problem.startswith(
        "spec.externalNodes[0].name: 'web.default.svc' is Service default/web, which leads to too many"
    )
    assert tried("web.default.svc", service(), slice_of(many[1:])) == []
    pods = [pod(f"own-{number}", address) for number, address in enumerate(many)]
    assert tried("web.default.svc", service(), slice_of(many), *pods) == []


def test_rules_to_one_service_follow_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[ObjectKey] = []
    whole = listed_endpoints

    def noted(view: View, options: Options, key: ObjectKey) -> object:
        looks.append(key)
        return whole(view, options, key)

    monkeypatch.setattr(destinations, "listed_endpoints", noted)
    rules = [rule(f"r{number}", match={"paths": [f"/{number}"]}) for number in range(50)]
    _, loop = prepare(*VICTIM, outside("big.default.svc", "web"), service("big"), route(*rules), options=STRICT)
    loop.settle()
    before = len(looks)
    loop.enqueue(ObjectKey("ApisixRoute", "default", "route"))
    loop.settle()
    assert len(looks) == before + 1
