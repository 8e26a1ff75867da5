"""TCP and UDP services of ingress-nginx: entries of ConfigMaps as stream routes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.keys import ObjectKey
from tests.unit.translation.nginx.objects import OPTIONS, SERVICE, translated

assert OPTIONS.nginx is not None
STREAMS = replace(
    OPTIONS,
    nginx=replace(
        OPTIONS.nginx,
        tcp_services=ObjectKey("ConfigMap", "ingress-nginx", "tcp"),
        udp_services=ObjectKey("ConfigMap", "ingress-nginx", "udp"),
    ),
)


def ports(name: str, **entries: str) -> dict[str, Any]:
    """Return a ConfigMap; the names of entries are `p` and a port."""
    data = {key.removeprefix("p"): text for key, text in entries.items()}
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "ingress-nginx"}, "data": data}


def streams(outcome: Outcome) -> dict[int, str]:
    """Return the upstream of each port."""
    upstreams = {each.key.id: each.name for each in outcome.records if each.key.kind == "upstreams"}
    bodies = [each.body for each in outcome.records if each.key.kind == "stream_routes"]
    return {body["server_port"]: upstreams[body["upstream_id"]] for body in bodies}


def test_each_entry_is_a_stream_route_to_the_service() -> None:
    outcome = translated(ports("tcp", p9000="shop/web:80"), ports("udp", p53="shop/web:8080"), options=STREAMS)

    assert streams(outcome) == {9000: "shop_web_80", 53: "shop_web_80"}


def test_a_port_of_the_service_may_have_a_name() -> None:
    named = {**SERVICE, "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "amqp", "port": 5672}]}}

    assert streams(translated(ports("tcp", p5672="shop/web:amqp"), named, options=STREAMS)) == {5672: "shop_web_5672"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("web:80", "write namespace/service:port"),
        ("shop/web:80:PROXY", "PROXY protocol"),
        ("shop/web:80::PROXY", "PROXY protocol"),
        ("shop/absent:80", "does not exist"),
        ("shop/web:81", "does not exist"),
    ],
)
def test_an_entry_without_effect_is_reported_and_the_others_are_served(entry: str, message: str) -> None:
    outcome = translated(ports("tcp", p1=entry, p2="shop/web:80"), options=STREAMS)

    assert streams(outcome) == {2: "shop_web_80"}
    assert [message in str(problem) for _, problem in outcome.problems] == [True]


def test_a_port_of_both_config_maps_has_one_route() -> None:
    outcome = translated(ports("tcp", p53="shop/web:80"), ports("udp", p53="shop/web:80"), options=STREAMS)

    assert streams(outcome) == {53: "shop_web_80"}
    assert ["one route for both" in str(problem) for _, problem in outcome.problems] == [True]


def test_a_key_that_is_not_a_port_is_reported() -> None:
    outcome = translated(ports("tcp", web="shop/web:80", p70000="shop/web:80"), options=STREAMS)

    assert (streams(outcome), len(outcome.problems)) == ({}, 2)


def test_a_change_of_the_config_map_is_read() -> None:
    outcome = translated(ports("tcp", p1="shop/web:80"), options=STREAMS)

    reads = outcome.world.dependents.reads_of(ObjectKey("NginxHost", "", "_"))
    assert {ObjectKey("ConfigMap", "ingress-nginx", "tcp"), ObjectKey("Service", "shop", "web")} <= set(reads)
