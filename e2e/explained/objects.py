"""Random sets of objects of one provider, which compete for a few hosts and paths, and requests for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from e2e.nginx.world import Certificates

Json = dict[str, Any]

HOSTS = ("a.test", "x.a.test", "*.a.test", "b.test")
ASKED = ("a.test", "x.a.test", "w.x.a.test", "b.test", "other.test")
PATHS = ("/", "/a", "/a/b", "/ab", "/a/b/c", "/b")
SERVICES = ("one", "two", "three", "empty")
NAMES = "a.test,x.a.test,*.a.test,b.test"
CONTROLLER = "apisix.apache.org/apisix-ingress-controller"
NGINX = "nginx.ingress.kubernetes.io"
APISIX = "k8s.apisix.apache.org"


class Maker:
    """Makes the objects of one set from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._number = 0

    def some(self, *choices: Any) -> Any:
        """Return one of the choices."""
        return self.rng.choice(choices)

    def often(self, share: float) -> bool:
        """Return True with a probability."""
        return self.rng.random() < share

    def hosts(self, *extra: str) -> list[str]:
        """Return one or two hosts."""
        return self.rng.sample((*HOSTS, *extra), self.some(1, 1, 2))

    def made(self, kind: str, name: str = "", *, annotations: Mapping[str, str] | None = None, **fields: Any) -> Json:
        """Return an object with a name and an age of its own."""
        self._number += 1
        meta: Json = {"name": name or f"o{self._number}", "namespace": "default", "annotations": annotations or {}}
        meta["creationTimestamp"] = f"2026-01-01T00:00:{self._number:02}Z"
        return {"kind": kind, "metadata": meta, **fields}


def objects_of(provider: str, seed: int, certificates: Certificates) -> list[Json]:
    """Return a set of objects of a provider, with the Services and the Secret that they refer to."""
    maker = Maker(seed)
    pair = {
        "tls.crt": certificates.filled(f"${{CERT:{NAMES}@ca}}"),
        "tls.key": certificates.filled(f"${{KEY:{NAMES}@ca}}"),
    }
    found = [maker.made("Secret", "pair", type="kubernetes.io/tls", stringData=pair)]
    for number, name in enumerate(SERVICES):
        found.append(maker.made("Service", name, spec={"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}))
        endpoints = [] if name == "empty" else [{"addresses": [f"10.1.0.{number + 1}"]}]
        slice_ = maker.made(
            "EndpointSlice", name, addressType="IPv4", endpoints=endpoints, ports=[{"name": "", "port": 80}]
        )
        slice_["metadata"]["labels"] = {"kubernetes.io/service-name": name}
        found.append(slice_)
    return found + PROVIDERS[provider](maker)


def requests(provider: str, seed: int, count: int) -> list[Json]:
    """Return requests for the hosts and paths of the sets."""
    maker = Maker(seed)
    return [_request(maker) for _ in range(count)]


def _request(it: Maker) -> Json:
    headers = [[name, it.some("0", "1")] for name in it.rng.sample(("X-One", "X-Two", "Cookie"), it.some(0, 0, 1))]
    query = it.some("", "", "", "?q=1", "?q=0&r=1")
    path = it.some(*PATHS, "/a/x", "/a/b/d", "/none") + query
    scheme = it.some("http", "http", "https")
    host = it.some(*ASKED)
    method = it.some("GET", "GET", "GET", "POST", "OPTIONS", "HEAD")
    headers = [[name, f"c={value}" if name == "Cookie" else value] for name, value in headers]
    return {"path": path, "host": host, "scheme": scheme, "method": method, "headers": headers, "src": ""}


def _apisix_routes(it: Maker) -> list[Json]:
    routes = [it.made("ApisixRoute", spec={"http": [_rule(it, n) for n in range(it.some(1, 1, 2))]}) for _ in range(5)]
    tls = it.made("ApisixTls", spec={"hosts": it.hosts(), "secret": {"name": "pair", "namespace": "default"}})
    return routes + ([tls] if it.often(0.7) else [])


def _rule(it: Maker, number: int) -> Json:
    paths = [it.some("/*", "/a", "/a/*", "/a*", "/a/b", "/b", "/b/*") for _ in range(it.some(1, 1, 2))]
    match: Json = {"hosts": it.hosts(), "paths": list(dict.fromkeys(paths))}
    if it.often(0.3):
        match["methods"] = it.some(["GET"], ["POST"], ["GET", "HEAD"])
    if it.often(0.3):
        match["exprs"] = [_expression(it)]
    backends = [{"serviceName": each, "servicePort": 80} for each in it.rng.sample(SERVICES, it.some(1, 1, 1, 2))]
    plugins = [_plugin(it)] if it.often(0.5) else []
    return {
        "name": f"r{number}",
        "match": match,
        "backends": backends,
        "priority": it.some(0, 0, 1, 2),
        "plugins": plugins,
    }


def _expression(it: Maker) -> Json:
    subject = it.some(
        {"scope": "Header", "name": "X-One"},
        {"scope": "Query", "name": "q"},
        {"scope": "Cookie", "name": "c"},
        {"scope": "Path"},
    )
    return {"subject": subject, **it.some(*_OPERATORS)}


_OPERATORS = (
    {"op": "Equal", "value": "1"},
    {"op": "NotEqual", "value": "1"},
    {"op": "In", "set": ["1", "2"]},
    {"op": "NotIn", "set": ["1", "2"]},
    {"op": "RegexMatch", "value": "^[1b/]"},
    {"op": "RegexNotMatch", "value": "^[1b/]"},
)


def _plugin(it: Maker) -> Json:
    name, config = it.some(*_PLUGINS)
    return {"name": name, "enable": True, "config": config}


_PLUGINS: tuple[tuple[str, Json], ...] = (
    ("redirect", {"http_to_https": True}),
    ("redirect", {"uri": "/moved$uri", "ret_code": 301}),
    ("redirect", {"regex_uri": ["^/a/(.*)", "https://c.test/$1"], "ret_code": 308}),
    ("redirect", {"uri": "https://c.test/", "append_query_string": True}),
    ("fault-injection", {"abort": {"http_status": 503}}),
    ("fault-injection", {"abort": {"http_status": 418, "vars": [[["arg_q", "==", "1"]]]}}),
    ("fault-injection", {"abort": {"http_status": 200, "body": "ok"}}),
    ("response-rewrite", {"status_code": 202}),
    ("response-rewrite", {"status_code": 299, "vars": [["status", "==", "200"]]}),
    ("response-rewrite", {"status_code": 598, "_meta": {"filter": [["arg_q", "==", "1"]]}}),
    ("ip-restriction", {"whitelist": ["127.0.0.0/8"]}),
    ("ip-restriction", {"blacklist": ["127.0.0.0/8"]}),
    ("key-auth", {}),
    ("basic-auth", {}),
    ("cors", {}),
    ("limit-count", {"count": 1000, "time_window": 1, "policy": "local"}),
    ("proxy-rewrite", {"regex_uri": ["^/a/(.*)", "/$1"]}),
    ("client-control", {"max_body_size": 10}),
)


def _ingresses(it: Maker) -> list[Json]:
    return [_ingress(it, "apisix", _APISIX, APISIX) for _ in range(5)]


_APISIX: tuple[Json, ...] = (
    {},
    {},
    {"http-to-https": "true"},
    {"http-redirect": "/moved", "http-redirect-code": "308"},
    {"enable-cors": "true"},
    {"allowlist-source-range": "127.0.0.0/8"},
    {"blocklist-source-range": "127.0.0.0/8"},
    {"rewrite-target": "/x"},
    {"auth-type": "keyAuth"},
    {"http-allow-methods": "GET"},
    {"use-regex": "true"},
)


def _nginx(it: Maker) -> list[Json]:
    class_ = it.made("IngressClass", "nginx", spec={"controller": "k8s.io/ingress-nginx"})
    class_["metadata"]["namespace"] = ""
    return [class_, *(_ingress(it, "nginx", _NGINX, NGINX) for _ in range(5))]


_NGINX: tuple[Json, ...] = (
    {},
    {},
    {"permanent-redirect": "https://c.test/"},
    {"temporal-redirect": "https://c.test/", "temporal-redirect-code": "307"},
    {"force-ssl-redirect": "true"},
    {"ssl-redirect": "false"},
    {"rewrite-target": "/x"},
    {"app-root": "/app"},
    {"whitelist-source-range": "127.0.0.0/8"},
    {"denylist-source-range": "127.0.0.0/8"},
    {"configuration-snippet": "more_set_headers 'X: y';"},
    {"auth-type": "basic", "auth-secret": "missing"},
    {"enable-cors": "true"},
    {"from-to-www-redirect": "true"},
    {"server-alias": "alias.test"},
    {"canary": "true", "canary-by-header": "X-One"},
    {"proxy-body-size": "1k"},
    {"limit-rps": "100"},
    {"default-backend": "one"},
)


def _ingress(it: Maker, class_: str, values: tuple[Json, ...], prefix: str) -> Json:
    rules = []
    for host in it.hosts(*(("",) if it.often(0.1) else ())):
        paths = [_ingress_path(it) for _ in range(it.some(1, 1, 2))]
        rules.append({**({"host": host} if host else {}), "http": {"paths": paths}})
    tls = [{"hosts": [rule["host"] for rule in rules if "host" in rule], "secretName": "pair"}] if it.often(0.4) else []
    given = {**it.some(*values), **(it.some(*values) if it.often(0.3) else {})}
    annotations = {f"{prefix}/{name}": value for name, value in given.items()}
    spec = {"ingressClassName": class_, "rules": rules, "tls": tls}
    return it.made("Ingress", spec=spec, annotations=annotations)


def _ingress_path(it: Maker) -> Json:
    path, kind = it.some("/", "/a", "/a/b", "/ab", "/b"), it.some("Prefix", "Prefix", "Exact", "ImplementationSpecific")
    service = {"name": it.some(*SERVICES), "port": {"number": 80}}
    return {"path": path, "pathType": kind, "backend": {"service": service}}


def _http_routes(it: Maker) -> list[Json]:
    class_ = it.made("GatewayClass", "apisix", spec={"controllerName": CONTROLLER})
    class_["metadata"]["namespace"] = ""
    listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
    if it.often(0.7):
        tls = {"certificateRefs": [{"name": "pair"}]}
        listeners.append({"name": "https", "port": 443, "protocol": "HTTPS", "hostname": it.some(*HOSTS), "tls": tls})
    gateway = it.made("Gateway", "gw", spec={"gatewayClassName": "apisix", "listeners": listeners})
    return [class_, gateway, *(_http_route(it) for _ in range(5))]


def _http_route(it: Maker) -> Json:
    rules = [
        {
            "matches": [_match(it) for _ in range(it.some(1, 1, 2))],
            "filters": [it.some(*_FILTERS)] if it.often(0.4) else [],
            "backendRefs": [{"name": each, "port": 80} for each in it.rng.sample(SERVICES, it.some(1, 1, 1, 2))],
        }
        for _ in range(it.some(1, 1, 2))
    ]
    for rule in rules:
        if any(each["type"] == "RequestRedirect" for each in rule["filters"]):
            del rule["backendRefs"]
    return it.made("HTTPRoute", spec={"parentRefs": [{"name": "gw"}], "hostnames": it.hosts(), "rules": rules})


_FILTERS: tuple[Json, ...] = (
    {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}},
    {"type": "RequestRedirect", "requestRedirect": {"hostname": "c.test", "statusCode": 302}},
    {
        "type": "RequestRedirect",
        "requestRedirect": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/moved"}, "statusCode": 302},
    },
    {
        "type": "URLRewrite",
        "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}},
    },
    {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-Set", "value": "1"}]}},
    {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "X-Set", "value": "1"}]}},
)


def _match(it: Maker) -> Json:
    match: Json = {}
    if it.often(0.9):
        match["path"] = it.some(
            *({"type": kind, "value": path} for kind in ("Exact", "PathPrefix", "PathPrefix") for path in PATHS),
            {"type": "RegularExpression", "value": "/a/[bx].*"},
        )
    if it.often(0.2):
        match["method"] = it.some("GET", "POST")
    if it.often(0.3):
        match["headers"] = [{"name": it.some("X-One", "X-Two"), "value": it.some("0", "1")}]
    if it.often(0.2):
        match["queryParams"] = [{"name": it.some("q", "r"), "value": it.some("0", "1")}]
    return match


PROVIDERS: Mapping[str, Callable[[Maker], list[Json]]] = {
    "ApisixRoute": _apisix_routes,
    "Ingress": _ingresses,
    "ingress-nginx": _nginx,
    "HTTPRoute": _http_routes,
}
