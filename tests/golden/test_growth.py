"""The work for one object grows with its size: four times the size takes at most about four times the steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from tests.golden.driver import settle
from tests.steps import pumped, steps
from tests.unit.translation.nginx import tables
from translation.core.options import Options
from translation.nginx.options import NginxOptions
from translation.nginx.tables.annotations import TABLE

_OPTIONS = Options(nginx=NginxOptions())
_FEW, _MANY, _SLACK = 15, 60, 2000
_PARSED: dict[str, dict[str, Any]] = json.loads(
    (Path(tables.__file__).parent / "parsed_values.json").read_text("utf-8")
)


def _object(api_version: str, kind: str, name: str, spec: JsonObject, **meta: Any) -> JsonObject:
    created = {"creationTimestamp": "2024-01-01T00:00:00Z", "uid": name}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", **created, **meta},
        "spec": spec,
    }


_PORT = {"port": 80, "name": "http"}
_GATEWAY_API = "gateway.networking.k8s.io/v1"
_WORLD = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    _object("v1", "Service", "web", {"clusterIP": "10.0.0.1", "ports": [_PORT]}),
    *(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": name},
            "spec": {"controller": controller},
        }
        for name, controller in (
            ("nginx", "k8s.io/ingress-nginx"),
            ("apisix", "apisix.apache.org/apisix-ingress-controller"),
        )
    ),
    {
        "apiVersion": _GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": "apisix"},
        "spec": {"controllerName": "apisix.apache.org/apisix-ingress-controller"},
    },
]


def _ingress(hosts: Mapping[str, list[str]], class_name: str = "nginx", **more: Any) -> JsonObject:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [
        {"host": host, "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend} for path in paths]}}
        for host, paths in hosts.items()
    ]
    annotations = {f"nginx.ingress.kubernetes.io/{name}": text for name, text in more.pop("annotations", {}).items()}
    spec = {"ingressClassName": class_name, "rules": rules, **more}
    return _object("networking.k8s.io/v1", "Ingress", "web", spec, annotations=annotations)


def _route(count: int, **rule: Any) -> JsonObject:
    """Return an ApisixRoute with this number of rules."""
    rules = [
        {
            "name": f"r{number}",
            "match": {"hosts": ["shop.org"], "paths": [f"/{number}"]},
            "backends": [{"serviceName": "web", "servicePort": 80}],
            **rule,
        }
        for number in range(count)
    ]
    return _object("apisix.apache.org/v2", "ApisixRoute", "web", {"ingressClassName": "apisix", "http": rules})


def _gateway(listeners: list[JsonObject]) -> JsonObject:
    return _object(_GATEWAY_API, "Gateway", "gw", {"gatewayClassName": "apisix", "listeners": listeners})


def _listener(number: int, hostname: str) -> JsonObject:
    return {"name": f"l{number}", "port": 80, "protocol": "HTTP", "hostname": hostname}


def _http_route(hostnames: list[str], paths: list[str]) -> list[JsonObject]:
    rules = [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": path}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }
        for path in paths
    ]
    spec = {"parentRefs": [{"name": "gw"}], "hostnames": hostnames, "rules": rules}
    return [_gateway([_listener(0, "*.org")]), _object(_GATEWAY_API, "HTTPRoute", "web", spec)]


def _texts(pattern: str, count: int) -> list[str]:
    return [pattern.format(number) for number in range(count)]


SHAPES: Mapping[str, Callable[[int], list[JsonObject]]] = {
    "paths of ingress-nginx": lambda size: [_ingress({"shop.org": _texts("/{:04}", size)})],
    "hosts of ingress-nginx": lambda size: [_ingress({key: ["/"] for key in _texts("h{}.org", size)})],
    "certificates of ingress-nginx": lambda size: [
        _ingress(
            {key: ["/"] for key in _texts("h{}.org", size)},
            tls=[{"hosts": [host], "secretName": host} for host in _texts("h{}.org", size)],
        )
    ],
    "aliases": lambda size: [
        _ingress({"shop.org": ["/"]}, annotations={"server-alias": ",".join(_texts("h{}.org", size))})
    ],
    "paths of an Ingress": lambda size: [_ingress({"shop.org": _texts("/{}", size)}, "apisix")],
    "hosts of an Ingress": lambda size: [_ingress({key: ["/"] for key in _texts("h{}.org", size)}, "apisix")],
    "rules of an ApisixRoute": lambda size: [_route(size)],
    "hosts of a rule": lambda size: [_route(1, match={"hosts": _texts("h{}.org", size), "paths": ["/"]})],
    "paths of a rule": lambda size: [_route(1, match={"hosts": ["shop.org"], "paths": _texts("/{}", size)})],
    "plugins of a rule": lambda size: [
        _route(1, plugins=[{"name": name, "enable": True, "config": {"a": 1}} for name in _texts("p{}", size)])
    ],
    "listeners of a Gateway": lambda size: [_gateway([_listener(number, f"h{number}.org") for number in range(size)])],
    "equal listeners of a Gateway": lambda size: [_gateway([_listener(number, "h.org") for number in range(size)])],
    "hostnames of an HTTPRoute": lambda size: _http_route(_texts("h{}.org", size), ["/"]),
    "rules of an HTTPRoute": lambda size: _http_route(["shop.org"], _texts("/{}", size)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_size_of_an_object(shape: str) -> None:
    def work(size: int) -> int:
        objects = [*_WORLD, *SHAPES[shape](size)]
        return steps(lambda: settle(objects, _OPTIONS))

    work(1)  # fills caches that do not depend on the object
    few, many = work(_FEW), work(_MANY)
    assert many <= _MANY // _FEW * few + _SLACK


@pytest.mark.parametrize("end", ["", "!"])
def test_the_work_grows_with_the_length_of_every_annotation_of_an_ingress(end: str) -> None:
    def work(length: int) -> int:
        values = {}
        for name in TABLE:
            seed = next(filter(None, _PARSED.get(name, {}).get("taken", ())), "a b;")
            values[name] = next(pumped(seed, length)) + end
        objects = [*_WORLD, _ingress({"shop.org": ["/"]}, annotations=values)]
        return steps(lambda: settle(objects, _OPTIONS))

    work(1)
    few, many = work(100), work(1000)
    assert many <= 10 * few + _SLACK
