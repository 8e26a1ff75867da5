"""The configurations to compare: the same hosts and paths, written by hand or generated from the objects of a provider.

Each one has its own namespace and hosts, so that a gateway serves all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from translation.core.options import Options
from translation.nginx.options import NginxOptions

Json = dict[str, Any]
BY_HAND = "by-hand"
LEAN = "nginx-lean"
PATHS = ("/api", "/web", "/static")
REQUESTED = "/api/v1/items"
_SERVICE = "web"
_CONFIG_MAP = ObjectKey("ConfigMap", "ingress-nginx", "ingress-nginx-controller")
_CONTROLLER = "apisix.apache.org/apisix-ingress-controller"
_FEATURES = {
    "cors": {"enable-cors": "true"},
    "limit": {"limit-rps": "1000000"},
    "error-page": {"custom-http-errors": "404,503", "default-backend": _SERVICE},
    "rewrite": {"rewrite-target": "/"},
}


@dataclass(frozen=True, slots=True)
class Site:
    """The hosts of a configuration, and the backend of all of them."""

    name: str
    hosts: int
    backend: str
    port: int
    """The port that clients connect to, which the listener of a Gateway has."""

    def host(self, number: int) -> str:
        """Return the name of a host."""
        return f"h{number}.{self.name}.bench.test"


def records(site: Site) -> dict[RecordKey, Json]:
    """Return the records of a configuration."""
    if site.name == BY_HAND:
        return _by_hand(site)
    nginx = NginxOptions(config_map=_CONFIG_MAP, lean=site.name == LEAN)
    objects = [RESOURCES[each["kind"]].decode(each) for each in _objects(site)]
    found = settle([each for each in objects if each is not None], Options(gateway_api=True, nginx=nginx))
    errors = [problem for _, problem in found.problems if problem.severity == "error"]
    assert not errors, errors
    own = found.bodies().items()
    return {key: {name: value for name, value in body.items() if name != "id"} for key, body in own}


def _by_hand(site: Site) -> dict[RecordKey, Json]:
    upstream = RecordKey("upstreams", f"bench-{BY_HAND}")
    host, _, port = site.backend.rpartition(":")
    found: dict[RecordKey, Json] = {upstream: {"type": "roundrobin", "nodes": {f"{host}:{port}": 1}}}
    for number in range(site.hosts):
        for place, path in enumerate(PATHS):
            body = {"hosts": [site.host(number)], "uris": [path, f"{path}/*"], "upstream_id": upstream.id}
            found[RecordKey("routes", f"bench-{BY_HAND}-{number}-{place}")] = body
    return found


def _objects(site: Site) -> Iterator[Json]:
    yield {"kind": "Namespace", "metadata": {"name": site.name}}
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    yield _object(site, "Service", _SERVICE, {"spec": {"clusterIP": "10.96.0.1", "ports": ports}})
    host, _, port = site.backend.rpartition(":")
    endpoints: Json = {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": int(port), "protocol": "TCP"}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
    }
    meta = {"name": _SERVICE, "namespace": site.name, "labels": {"kubernetes.io/service-name": _SERVICE}}
    yield {"kind": "EndpointSlice", "metadata": meta, **endpoints}
    yield from CONFIGURATIONS[site.name](site)


def _object(site: Site, kind: str, name: str, body: Json, annotations: Mapping[str, str] | None = None) -> Json:
    meta: Json = {"name": name, "namespace": site.name, "creationTimestamp": "2026-01-01T00:00:00Z", "uid": name}
    return {"kind": kind, "metadata": meta | ({"annotations": dict(annotations)} if annotations else {}), **body}


def _apisix_route(site: Site) -> Iterator[Json]:
    backends = [{"serviceName": _SERVICE, "servicePort": 80}]
    for number in range(site.hosts):
        http = [
            {
                "name": path[1:],
                "match": {"hosts": [site.host(number)], "paths": [path, f"{path}/*"]},
                "backends": backends,
            }
            for path in PATHS
        ]
        yield _object(site, "ApisixRoute", f"r{number}", {"spec": {"ingressClassName": "apisix", "http": http}})


def _ingress(site: Site, ingress_class: str = "apisix", annotations: Mapping[str, str] | None = None) -> Iterator[Json]:
    controller = "k8s.io/ingress-nginx" if ingress_class == "nginx" else "apisix.apache.org/apisix-ingress"
    yield {"kind": "IngressClass", "metadata": {"name": ingress_class}, "spec": {"controller": controller}}
    backend = {"service": {"name": _SERVICE, "port": {"number": 80}}}
    for number in range(site.hosts):
        paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in PATHS]
        rule = {"host": site.host(number), "http": {"paths": paths}}
        spec = {"ingressClassName": ingress_class, "rules": [rule]}
        yield _object(site, "Ingress", f"r{number}", {"spec": spec}, annotations)


def _nginx(*features: str) -> Callable[[Site], Iterator[Json]]:
    texts = {f"nginx.ingress.kubernetes.io/{name}": text for each in features for name, text in _FEATURES[each].items()}
    return lambda site: _ingress(site, "nginx", texts)


def _http_route(site: Site, filters: tuple[Json, ...] = ()) -> Iterator[Json]:
    yield {"kind": "GatewayClass", "metadata": {"name": "apisix"}, "spec": {"controllerName": _CONTROLLER}}
    listeners = [{"name": "http", "port": site.port, "protocol": "HTTP"}]
    yield _object(site, "Gateway", "gateway", {"spec": {"gatewayClassName": "apisix", "listeners": listeners}})
    for number in range(site.hosts):
        rules = [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": path}}],
                "filters": list(filters),
                "backendRefs": [{"name": _SERVICE, "port": 80}],
            }
            for path in PATHS
        ]
        spec = {"parentRefs": [{"name": "gateway"}], "hostnames": [site.host(number)], "rules": rules}
        yield _object(site, "HTTPRoute", f"r{number}", {"spec": spec})


_REWRITE: Json = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v"}},
}
_HEADER: Json = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-team", "value": "a"}]}}

CONFIGURATIONS: dict[str, Callable[[Site], Iterator[Json]]] = {
    "apisixroute": _apisix_route,
    "ingress": _ingress,
    "httproute": _http_route,
    "httproute-rewrite": lambda site: _http_route(site, (_REWRITE,)),
    "httproute-header": lambda site: _http_route(site, (_HEADER,)),
    "nginx": _nginx(),
    LEAN: _nginx(),
    "nginx-rewrite": _nginx("rewrite"),
    "nginx-cors": _nginx("cors"),
    "nginx-limit": _nginx("limit"),
    "nginx-error-page": _nginx("error-page"),
    "nginx-all": _nginx("cors", "limit", "error-page"),
}
"""Configurations other than the one by hand, which each is compared with."""
