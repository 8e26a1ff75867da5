"""Objects of every kind that tenants may write, with hosts, names and targets for which they compete."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from tests.unit.translation.gateway.objects import CLASS, gateway, listener, secure
from tests.unit.translation.objects import make, pem, secret, service

TENANTS = ("red", "green")
HOSTS = ("a.x.test", "b.x.test", "*.x.test", "A.x.test.", "y.test", "_", "")
PORTS = (80, 443, 8080, 9100, 9101)

GATEWAY_GROUP = "gateway.networking.k8s.io"
EVERY = {"namespaces": {"from": "All"}}
NGINX = "nginx.ingress.kubernetes.io/"


class Maker:
    """Generates objects of one tenant; `other` is the tenant whose objects it may try to use."""

    def __init__(self, seed: random.Random, namespace: str, other: str) -> None:
        self.seed = seed
        self.namespace = namespace
        self.other = other

    def some(self, *choices: Any) -> Any:
        return self.seed.choice(choices)

    def hosts(self, most: int = 2) -> list[str]:
        """Return hosts of the competition, and sometimes one of the tenant's own."""
        found = self.seed.sample(HOSTS, self.seed.randint(0, most))
        return [*found, *([f"{self.namespace}.test"] if self.seed.random() < 0.4 else [])]

    def host(self) -> str:
        return str(self.some(*HOSTS, f"{self.namespace}.test"))

    def space(self) -> str:
        """Return the namespace of a reference: usually the tenant's own."""
        return str(self.some(self.namespace, self.namespace, self.namespace, self.other, "operator"))

    def plugins(self) -> list[JsonObject]:
        """Return plugins in the format of custom resources; some are not permitted."""
        return [
            {"name": name, "enable": True, "config": config}
            for name, config in self.seed.sample(
                (
                    ("cors", {}),
                    ("key-auth", {}),
                    ("limit-count", {"count": 1, "time_window": 1, "group": "g", "policy": "local"}),
                    ("serverless-pre-function", {"functions": ["return function() end"]}),
                    ("http-logger", {"uri": "http://127.0.0.1/"}),
                    ("proxy-cache", {"cache_key": ["$uri"]}),
                    ("mocking", {"response_schema": {}}),
                ),
                self.some(0, 0, 1, 2),
            )
        ]

    def made(self, kind: str, name: str | None = None, *, annotations: Any = None, **fields: Any) -> JsonObject:
        name = name or str(self.some("web", "app", "shop"))
        raw = make(kind, name, namespace=self.namespace, annotations=annotations, **fields)
        raw["metadata"]["creationTimestamp"] = f"2026-01-{self.seed.randint(1, 6):02}T00:00:00Z"
        return raw


def _service(it: Maker) -> JsonObject:
    outside = {"type": "ExternalName", "externalName": it.some("example.org", "127.0.0.1", f"web.{it.other}.svc")}
    inside = {"clusterIP": "10.0.0.1"}
    spec = {"ports": [{"port": 80}], **it.some(inside, inside, outside)}
    return it.made("Service", it.some("web", "app"), spec=spec)


def _endpoints(it: Maker) -> JsonObject:
    subsets = [{"addresses": [{"ip": it.some("10.1.0.1", "10.2.0.1", "127.0.0.1")}], "ports": [{"port": 8080}]}]
    return it.made("Endpoints", it.some("web", "app"), subsets=subsets)


def _slice(it: Maker) -> JsonObject:
    raw = it.made(
        "EndpointSlice",
        it.some("web-1", "app-1"),
        addressType="IPv4",
        endpoints=[{"addresses": [it.some("10.1.0.1", "10.2.0.1", "127.0.0.1")]}],
        ports=[{"name": "", "port": 8080}],
    )
    raw["metadata"]["labels"] = {"kubernetes.io/service-name": it.some("web", "app")}
    return raw


def _pod(it: Maker) -> JsonObject:
    return it.made("Pod", spec={}, status={"podIPs": [{"ip": it.some("10.1.0.1", "10.2.0.1")}], "phase": "Running"})


def _secret(it: Maker) -> JsonObject:
    made = pem(it.seed.randint(1, 2))
    data = {
        "tls.crt": made.certificate,
        "tls.key": made.key,
        "ca.crt": made.certificate,
        "key": "k",
        "auth": "u:{SHA}x",
    }
    return it.made("Secret", it.some("pair", "other"), stringData=data)


def _config_map(it: Maker) -> JsonObject:
    return it.made("ConfigMap", it.some("ca", "headers"), data={"ca.crt": pem(1).certificate, "X-A": "b"})


def _ca_bundle(it: Maker) -> JsonObject:
    return it.made(CA_BUNDLE, "ca", data={"ca.crt": pem(it.seed.randint(1, 2)).certificate})


def _grant(it: Maker) -> JsonObject:
    who = {"group": GATEWAY_GROUP, "kind": it.some("HTTPRoute", "Gateway"), "namespace": it.other}
    return it.made("ReferenceGrant", spec={"from": [who], "to": [{"group": "", "kind": "Service"}]})


def _ingress(it: Maker) -> JsonObject:
    backend = {"service": {"name": it.some("web", "web", "app", "none"), "port": {"number": 80}}}
    paths = [{"path": it.some("/", "/login"), "pathType": "Prefix", "backend": backend}]
    rules = [{**({"host": host.lower()} if host else {}), "http": {"paths": paths}} for host in it.hosts()]
    tls = it.some([], [{"hosts": [host.lower() for host in it.hosts()], "secretName": "pair"}])
    given = {
        "canary": "true",
        "canary-weight": "50",
        "server-alias": it.host().lower(),
        "auth-secret": f"{it.space()}/pair",
        "auth-tls-secret": f"{it.space()}/pair",
        "affinity": "cookie",
        "from-to-www-redirect": "true",
        "proxy-ssl-secret": f"{it.space()}/pair",
        "auth-url": "http://127.0.0.1/",
        "mirror-target": "http://169.254.169.254/",
        "upstream-vhost": "v.test",
        "default-backend": "web",
    }
    names = it.seed.sample(sorted(given), it.some(0, 0, 1, 2))
    kind = it.some("apisix", "nginx", "nginx")
    own = {"k8s.apisix.apache.org/plugin-config-name": it.some("web", "none")} if it.seed.random() < 0.2 else {}
    annotations = {f"{NGINX}{name}": given[name] for name in names} if kind == "nginx" else own
    default = {"defaultBackend": backend} if it.seed.random() < 0.1 else {}
    spec = {"ingressClassName": kind, "rules": rules, "tls": tls, **default}
    return it.made("Ingress", spec=spec, annotations=annotations)


def _route(it: Maker) -> JsonObject:
    backend = {"serviceName": it.some("web", "web", "app", "none"), "servicePort": 80}
    if it.seed.random() < 0.2:
        backend["serviceNamespace"] = it.space()
    match = {"hosts": it.hosts(), "paths": [it.some("/*", "/login", "/login/*")]}
    rule = {
        "name": "r",
        "match": match,
        "backends": [backend],
        "priority": it.some(0, 1, 9999),
        "plugins": it.plugins(),
    }
    if it.seed.random() < 0.2:
        space = {"plugin_config_namespace": it.space()} if it.seed.random() < 0.5 else {}
        rule |= {"plugin_config_name": it.some("web", "app"), **space}
    port = {"ingressPort": it.some(9100, 9101), **({"host": it.host()} if it.seed.random() < 0.3 else {})}
    stream = {"name": "s", "protocol": "TCP", "match": port, "backend": backend}
    return it.made("ApisixRoute", spec=it.some({"http": [rule]}, {"http": [rule]}, {"stream": [stream]}))


def _upstream(it: Maker) -> JsonObject:
    nodes = [{"type": "Domain", "name": it.some("example.org", "127.0.0.1", f"web.{it.other}.svc"), "port": 80}]
    settings: JsonObject = {"retries": 1, "loadbalancer": {"type": it.some("ewma", "roundrobin")}}
    return it.made("ApisixUpstream", it.some("web", "app"), spec=it.some(settings, {"externalNodes": nodes}))


def _plugin_config(it: Maker) -> JsonObject:
    return it.made("ApisixPluginConfig", it.some("web", "app"), spec={"plugins": it.plugins()})


def _tls(it: Maker) -> JsonObject:
    reference = {"name": it.some("pair", "other"), "namespace": it.space()}
    client = {"client": {"caSecret": {"name": "pair", "namespace": it.space()}}} if it.seed.random() < 0.3 else {}
    hosts = [host for host in it.hosts() if host] or ["y.test"]
    return it.made("ApisixTls", spec={"hosts": hosts, "secret": reference, **client})


def _consumer(it: Maker) -> JsonObject:
    key = {"keyAuth": {"value": {"key": it.some("one", "two")}}}
    basic = {"basicAuth": {"value": {"username": it.some("jack", "jane"), "password": "p"}}}
    by_secret = {"keyAuth": {"secretRef": {"name": "pair"}}}
    group = {"group": it.some("web", "app")} if it.seed.random() < 0.3 else {}
    return it.made("ApisixConsumer", spec={"authParameter": it.some(key, basic, by_secret), **group})


def _consumer_group(it: Maker) -> JsonObject:
    return it.made("ApisixConsumerGroup", it.some("web", "app"), spec={"plugins": it.plugins()})


def _proto(it: Maker) -> JsonObject:
    return it.made("ApisixProto", it.some("web", "app"), spec={"content": 'syntax = "proto3";'})


def _gateway(it: Maker) -> JsonObject:
    raw = gateway(*_listeners(it), allowedListeners=EVERY if it.seed.random() < 0.5 else {})
    tls = {"frontend": {"default": {"validation": {"caCertificateRefs": [{"kind": "ConfigMap", "name": "ca"}]}}}}
    spec = {**raw["spec"], **({"tls": tls} if it.seed.random() < 0.3 else {})}
    if it.seed.random() < 0.2:
        reference = {"group": "apisix.apache.org", "kind": "GatewayProxy", "name": "web"}
        spec["infrastructure"] = {"parametersRef": reference}
    if it.seed.random() < 0.3:
        spec["addresses"] = [{"type": "IPAddress", "value": it.some("192.0.2.1", "192.0.2.9")}]
    return it.made("Gateway", it.some("gw", "own"), spec=spec)


def _listeners(it: Maker) -> list[JsonObject]:
    found = []
    for number in range(it.seed.randint(1, 2)):
        host = it.host()
        shared = {"allowedRoutes": EVERY} if it.seed.random() < 0.4 else {}
        options: JsonObject = {**shared, **({"hostname": host} if host else {})}
        plain = listener(f"l{number}", it.some(80, 8080), "HTTP", **options)
        safe = secure(f"l{number}", it.some("pair", f"{it.space()}/pair"), port=it.some(443, 8443), **options)
        stream = listener(f"l{number}", it.some(9100, 9101), it.some("TCP", "UDP", "FOO"), **shared)
        found.append(it.some(plain, safe, stream))
    return found


def _listener_set(it: Maker) -> JsonObject:
    parent = {"name": "gw", "namespace": it.some("operator", "operator", it.namespace, it.other)}
    return it.made("ListenerSet", spec={"parentRef": parent, "listeners": _listeners(it)})


def _parents(it: Maker) -> list[JsonObject]:
    shared = {"name": "gw", "namespace": "operator"}
    own = {"name": it.some("gw", "own"), "namespace": it.some(it.namespace, it.other)}
    by_set = {
        "kind": "ListenerSet",
        "name": it.some("web", "app", "shop"),
        "namespace": it.some(it.namespace, it.other),
    }
    return list(it.seed.sample((shared, own, by_set), it.some(1, 1, 2)))


def _backends(it: Maker) -> list[JsonObject]:
    return [{"name": it.some("web", "web", "app", "none"), "port": 80, "namespace": it.space()}]


def _http_route(it: Maker, kind: str = "HTTPRoute") -> JsonObject:
    extension = {"group": "apisix.apache.org", "kind": "PluginConfig", "name": "web"}
    filters = it.seed.sample(
        (
            {"type": "RequestMirror", "requestMirror": {"backendRef": _backends(it)[0]}},
            {"type": "ExtensionRef", "extensionRef": extension},
            {"type": "ExtensionRef"},
        ),
        it.some(0, 0, 0, 1),
    )
    match: JsonObject = {"path": {"type": "PathPrefix", "value": it.some("/", "/login")}}
    rule = {"backendRefs": _backends(it), "filters": filters, **({"matches": [match]} if kind == "HTTPRoute" else {})}
    hosts = [host for host in it.hosts() if host]
    return it.made(kind, spec={"parentRefs": _parents(it), "hostnames": hosts, "rules": [rule]})


def _grpc_route(it: Maker) -> JsonObject:
    return _http_route(it, "GRPCRoute")


def _stream_route(kind: str) -> Callable[[Maker], JsonObject]:
    def made(it: Maker) -> JsonObject:
        hosts = {"hostnames": [host for host in it.hosts() if host] or ["y.test"]} if kind == "TLSRoute" else {}
        return it.made(kind, spec={"parentRefs": _parents(it), "rules": [{"backendRefs": _backends(it)}], **hosts})

    return made


def _backend_tls(it: Maker) -> JsonObject:
    targets = [{"group": "", "kind": "Service", "name": it.some("web", "app")}]
    validation = {
        "hostname": "v.test",
        "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": it.some("ca", "no")}],
    }
    return it.made("BackendTLSPolicy", spec={"targetRefs": targets, "validation": validation})


def _policy(kind: str, target: str, group: str, spec: Mapping[str, Any]) -> Callable[[Maker], JsonObject]:
    def made(it: Maker) -> JsonObject:
        targets = [{"group": group, "kind": target, "name": it.some("web", "app")}]
        plugins = {"plugins": it.plugins()} if kind == "L4RoutePolicy" else {}
        return it.made(kind, spec={"targetRefs": targets, **spec, **plugins})

    return made


def _route_plugins(it: Maker) -> JsonObject:
    return it.made("PluginConfig", it.some("web", "app"), spec={"plugins": it.plugins()})


def _gateway_consumer(it: Maker) -> JsonObject:
    reference = {"name": "gw", "namespace": it.some("operator", it.namespace, it.other)}
    config = {"key": it.some("one", "two")}
    spec = {"gatewayRef": reference, "credentials": [{"type": "key-auth", "name": "c", "config": config}]}
    return it.made("Consumer", spec=spec)


def _gateway_proxy(it: Maker) -> JsonObject:
    return it.made("GatewayProxy", spec={"plugins": it.plugins()})


MAKERS: Mapping[str, Callable[[Maker], JsonObject]] = {
    "Service": _service,
    "Endpoints": _endpoints,
    "EndpointSlice": _slice,
    "Pod": _pod,
    "Secret": _secret,
    "ConfigMap": _config_map,
    CA_BUNDLE: _ca_bundle,
    "ReferenceGrant": _grant,
    "Ingress": _ingress,
    "ApisixRoute": _route,
    "ApisixUpstream": _upstream,
    "ApisixPluginConfig": _plugin_config,
    "ApisixTls": _tls,
    "ApisixConsumer": _consumer,
    "ApisixConsumerGroup": _consumer_group,
    "ApisixProto": _proto,
    "Gateway": _gateway,
    "ListenerSet": _listener_set,
    "HTTPRoute": _http_route,
    "GRPCRoute": _grpc_route,
    "TLSRoute": _stream_route("TLSRoute"),
    "TCPRoute": _stream_route("TCPRoute"),
    "UDPRoute": _stream_route("UDPRoute"),
    "BackendTLSPolicy": _backend_tls,
    "HTTPRoutePolicy": _policy("HTTPRoutePolicy", "HTTPRoute", GATEWAY_GROUP, {"priority": 7}),
    "L4RoutePolicy": _policy("L4RoutePolicy", "TCPRoute", GATEWAY_GROUP, {}),
    "BackendTrafficPolicy": _policy("BackendTrafficPolicy", "Service", "", {"retries": 1}),
    "PluginConfig": _route_plugins,
    "Consumer": _gateway_consumer,
    "GatewayProxy": _gateway_proxy,
}
"""Kind → how to generate an object of it."""


def surroundings() -> list[JsonObject]:
    """Return the objects of the operator, and a Service and a certificate of each tenant."""
    shared = gateway(
        listener("http", allowedRoutes=EVERY),
        listener("tcp", 9000, "TCP", allowedRoutes=EVERY),
        secure("https", "pair", hostname="operator.test", allowedRoutes=EVERY),
        allowedListeners=EVERY,
    )
    shared["metadata"] |= {"namespace": "operator", "creationTimestamp": "2026-01-01T00:00:00Z"}
    made = pem(1)
    pairs = [
        secret("pair", namespace=each, tls__crt=made.certificate, tls__key=made.key, ca__crt=made.certificate, key="k")
        for each in ("operator", *TENANTS)
    ]
    nginx = make("IngressClass", "nginx", namespace="", spec={"controller": "k8s.io/ingress-nginx"})
    ports = {"operator": ":9000", **dict(zip(TENANTS, (":9100", ":9101"), strict=True))}
    spaces = [
        make("Namespace", name, namespace="", annotations={"apisix.apache.org/hosts": port})
        for name, port in ports.items()
    ]
    return [CLASS, nginx, shared, *spaces, *pairs, *(service(namespace=each) for each in TENANTS)]


def objects(seed: random.Random) -> list[JsonObject]:
    """Return objects of the tenants; each kind and name occurs at most once in a namespace."""
    found: dict[tuple[str, str, str], JsonObject] = {}
    favourites = seed.sample(sorted(MAKERS), 6)
    for _ in range(seed.randint(4, 16)):
        namespace = seed.choice(TENANTS)
        it = Maker(seed, namespace, next(each for each in TENANTS if each != namespace))
        raw = MAKERS[seed.choice(favourites)](it)
        found[raw["kind"], namespace, raw["metadata"]["name"]] = raw
    return list(found.values())
