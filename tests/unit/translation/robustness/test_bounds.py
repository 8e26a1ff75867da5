"""Limits per object: small strings can refer to the same large ones repeatedly."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service, ServicePort
from apisix_ingress.state.claims import UpstreamClaim
from tests.unit.translation.objects import (
    OPTIONS,
    get,
    ingress,
    ingress_rule,
    make,
    pem,
    reported,
    route,
    rule,
    secret,
    service,
    slice_of,
    upstream,
    world,
)
from tests.unit.translation.objects import claim as claim_upstreams
from translation.consumer import translate_consumer
from translation.core import context as bounds
from translation.core.outcome import KeepLast, Outcome, records_of
from translation.ingress import translate_ingress
from translation.route import translate_route
from translation.service import translate_service
from translation.tls import translate_tls
from translation.upstreams.nodes import MOST_NODES

WEB = ObjectKey("Service", "default", "web")


def upstreams_of(ports: int, *objects: JsonObject) -> Outcome:
    found = world(service(ports=[{"name": f"p{n}", "port": 1000 + n} for n in range(ports)]), *objects)
    claim_upstreams(found, "route", *(UpstreamClaim(WEB, 1000 + n) for n in range(ports)))
    view = found.view()
    return translate_service(WEB, view.get(Service, WEB), view, OPTIONS)


def slice_with(addresses: int, ports: int) -> JsonObject:
    endpoints = [{"addresses": [f"10.1.{n // 250}.{n % 250}"]} for n in range(addresses)]
    listed = [{"name": f"p{n}", "port": 8000 + n} for n in range(ports)]
    return {**slice_of([]), "endpoints": endpoints, "ports": listed}


def test_upstreams_of_one_service_share_what_may_be_nodes_of_it() -> None:
    found = upstreams_of(200, slice_with(1000, 200))
    counts = [len(record.body["nodes"]) for record in records_of(found)]
    assert counts == [MOST_NODES // 200] * 200
    assert set(reported(found)) == {"degraded TooLarge endpoints"}


def test_service_of_5000_pods_keeps_them_all() -> None:
    found = upstreams_of(2, slice_with(5000, 2))
    assert [len(record.body["nodes"]) for record in records_of(found)] == [5000, 5000]
    assert reported(found) == []


def test_ready_endpoints_are_counted_before_others() -> None:
    many = slice_with(2 * MOST_NODES, 1)
    for each in many["endpoints"]:
        each["conditions"] = {"ready": False, "serving": True, "terminating": True}
    many["endpoints"].append({"addresses": ["10.9.9.9"]})
    (record,) = records_of(upstreams_of(1, many))
    assert [node["host"] for node in record.body["nodes"]] == ["10.9.9.9"]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 2**20)


@pytest.mark.usefixtures("_small")
def test_a_secret_is_counted_for_each_rule_that_refers_to_it() -> None:
    plugin = {"name": "response-rewrite", "enable": True, "secretRef": "secret"}
    rules = [rule(f"r{n}", match={"paths": [f"/{n}"]}, plugins=[plugin]) for n in range(20)]
    found = world(service(), secret(body="x" * 60_000), route(*rules))
    got = translate_route(get(found, "ApisixRoute", "route"), found.view(), OPTIONS)
    assert "error TooLarge spec" in reported(got)
    assert records_of(got) == ()


@pytest.mark.usefixtures("_small")
def test_a_certificate_is_counted_for_each_entry_that_refers_to_it() -> None:
    pair = pem()
    found = world(
        service(),
        secret(tls__crt=pair.certificate * 100, tls__key=pair.key),
        ingress(ingress_rule(), tls=[{"secretName": "secret", "hosts": [f"h{n}.example.com"]} for n in range(20)]),
    )
    got = translate_ingress(get(found, "Ingress", "ing"), found.view(), OPTIONS)
    assert "error TooLarge spec" in reported(got)
    assert records_of(got) == ()


@pytest.mark.usefixtures("_small")
def test_settings_of_a_service_count_once_for_each_upstream() -> None:
    check = {"active": {"type": "http", "httpPath": "/" + "x" * 100_000, "healthy": {"interval": "1s"}}}
    found = upstreams_of(20, slice_with(1, 20), upstream(healthCheck=check))
    assert reported(found) == ["error TooLarge spec"]
    assert isinstance(found, KeepLast)


@pytest.mark.usefixtures("_small")
def test_what_is_referred_to_a_few_times_is_not_too_large() -> None:
    plugin = {"name": "response-rewrite", "enable": True, "secretRef": "secret"}
    rules = [rule(f"r{n}", match={"paths": [f"/{n}"]}, plugins=[plugin]) for n in range(4)]
    found = world(service(), secret(body="x" * 60_000), route(*rules))
    got = translate_route(get(found, "ApisixRoute", "route"), found.view(), OPTIONS)
    assert len(records_of(got)) == 4


@pytest.mark.parametrize(
    ("size", "want"), [(65_000, []), (66_000, ["error TooLarge spec.http[0].plugins[0].secretRef"])]
)
def test_secret_of_a_plugin_has_a_limit(size: int, want: list[str]) -> None:
    plugin = {"name": "response-rewrite", "enable": True, "secretRef": "secret"}
    found = world(service(), secret(body="x" * (size - 1), more="x"), route(rule(plugins=[plugin])))
    assert reported(translate_route(get(found, "ApisixRoute", "route"), found.view(), OPTIONS)) == want


@pytest.mark.parametrize(
    ("size", "want"), [(65_000, []), (66_000, ["error TooLarge spec.authParameter.basicAuth.secretRef.name"])]
)
def test_secret_of_a_consumer_has_a_limit_for_what_is_read_of_it(size: int, want: list[str]) -> None:
    found = world(
        secret(username="jack", password="x" * (size - 4), other="x" * 10**6),
        make("ApisixConsumer", "jack", spec={"authParameter": {"basicAuth": {"secretRef": {"name": "secret"}}}}),
    )
    assert reported(translate_consumer(get(found, "ApisixConsumer", "jack"), found.view(), OPTIONS)) == want


@pytest.mark.parametrize("field", ["tls__crt", "tls__key", "ca__crt"])
def test_certificates_and_keys_have_the_limit_that_gateways_have(field: str) -> None:
    pair = pem()
    data = {"tls__crt": pair.certificate, "tls__key": pair.key, "ca__crt": pair.certificate}
    server, clients = ({"name": name, "namespace": "default"} for name in ("server", "clients"))
    spec = {"hosts": ["a.example.com"], "secret": server, "client": {"caSecret": clients}}
    for size, want in ((65_000, []), (66_000, ["error TooLarge"])):
        padded = data | {field: data[field] + "#" * (size - len(data[field]))}
        authority = secret("clients", ca__crt=padded.pop("ca__crt"))
        found = world(secret("server", **padded), authority, make("ApisixTls", "web", spec=spec))
        got = translate_tls(get(found, "ApisixTls", "web"), found.view(), OPTIONS, now=None)
        assert [each.rpartition(" ")[0] for each in reported(got) if each.startswith("error")] == want


class Counted(tuple[ServicePort, ...]):
    """Ports that count how often they are iterated."""

    times = 0

    def __iter__(self) -> Iterator[ServicePort]:
        Counted.times += 1
        return super().__iter__()


def test_ports_of_a_service_are_indexed_once_for_many_rules() -> None:
    rules = [
        rule(f"r{n}", match={"paths": [f"/{n}"]}, backends=[{"serviceName": "web", "servicePort": 1000 + n}])
        for n in range(50)
    ]
    found = world(service(ports=[{"name": f"p{n}", "port": 1000 + n} for n in range(50)]), route(*rules))
    item: Service | None = found.stores["Service"].get(WEB)
    assert item is not None
    found.stores["Service"].set(replace(item, ports=Counted(item.ports)))
    Counted.times = 0
    assert len(records_of(translate_route(get(found, "ApisixRoute", "route"), found.view(), OPTIONS))) == 50
    assert Counted.times == 1
