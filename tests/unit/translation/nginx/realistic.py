"""Ingresses of ingress-nginx as clusters have them: seeded, with the annotations that charts and teams copy around."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "nginx.ingress.kubernetes.io/"
_CHECK = "http://oauth2-proxy.auth.svc.cluster.local:4180/oauth2/auth"
_HEADERS = 'more_set_headers "X-Frame-Options: DENY";\nadd_header X-Robots-Tag noindex;'


@dataclass(frozen=True, slots=True)
class Recipe:
    """A manifest that teams copy.

    Attributes:
        given: Annotations under the prefix.
        paths: (path, type) pairs.
        weight: Its frequency.
        other: Annotations of other programs.
        tls: Whether the host has a certificate.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[tuple[str, str], ...] = (("/", "Prefix"),)
    weight: int = 2
    other: Mapping[str, str] = field(default_factory=dict)
    tls: bool = True


_API = (("/api(/|$)(.*)", "ImplementationSpecific"),)
_ISSUER = {"cert-manager.io/cluster-issuer": "letsencrypt", "kubernetes.io/tls-acme": "true"}

RECIPES: Mapping[str, Recipe] = {
    "plain": Recipe(weight=40, other=_ISSUER),
    "http": Recipe(weight=10, tls=False),
    "spa": Recipe({}, (("/", "Prefix"), ("/api", "Prefix"), ("/healthz", "Exact")), 15, _ISSUER),
    "upload": Recipe(
        {"proxy-body-size": "512m", "proxy-read-timeout": "600", "proxy-request-buffering": "off"}, weight=14
    ),
    "unlimited": Recipe({"proxy-body-size": "0"}, weight=6),
    "capture": Recipe({"use-regex": "true", "rewrite-target": "/$2"}, _API, 14, _ISSUER),
    "old-rewrite": Recipe({"rewrite-target": "/"}, (("/app", "Prefix"),), 6),
    "pattern": Recipe({"use-regex": "true"}, (("/v[0-9]+/users/.*", "ImplementationSpecific"),), 4),
    "force-https": Recipe({"force-ssl-redirect": "true", "ssl-redirect": "true"}, weight=12, other=_ISSUER),
    "no-https": Recipe({"ssl-redirect": "false"}, weight=6),
    "websocket": Recipe({"proxy-read-timeout": "3600", "proxy-send-timeout": "3600"}, weight=8),
    "whitelist": Recipe({"whitelist-source-range": "10.0.0.0/8,192.168.0.0/16"}, weight=10),
    "bad-whitelist": Recipe({"whitelist-source-range": "office"}, weight=1),
    "deny": Recipe({"denylist-source-range": "203.0.113.0/24"}, weight=1),
    "cors": Recipe({"enable-cors": "true", "cors-allow-origin": "https://app.example.com"}, weight=8),
    "cors-credentials": Recipe(
        {"enable-cors": "true", "cors-allow-credentials": "true", "cors-allow-methods": "GET, PUT"}
    ),
    "basic": Recipe({"auth-type": "basic", "auth-secret": "users", "auth-realm": "Restricted"}, weight=6),
    "oauth2": Recipe(
        {"auth-url": _CHECK, "auth-signin": "https://auth.example.com/start?rd=$escaped_request_uri"}, weight=8
    ),
    "mtls": Recipe({"auth-tls-secret": "default/clients", "auth-tls-verify-client": "on"}),
    "satisfy": Recipe(
        {"satisfy": "any", "auth-type": "basic", "auth-secret": "users", "whitelist-source-range": "10.0.0.0/8"}
    ),
    "waf": Recipe({"enable-modsecurity": "true", "enable-owasp-core-rules": "true"}, weight=3),
    "snippet": Recipe({"configuration-snippet": _HEADERS}, weight=8),
    "server-snippet": Recipe({"server-snippet": "location ~* /(actuator|metrics) { deny all; }"}, weight=4),
    "auth-snippet": Recipe({"auth-url": _CHECK, "auth-snippet": "proxy_set_header X-Kind web;"}, weight=1),
    "sticky": Recipe(
        {"affinity": "cookie", "session-cookie-name": "route", "session-cookie-max-age": "172800"}, weight=6
    ),
    "hash": Recipe({"upstream-hash-by": "$remote_addr"}, weight=2),
    "grpc": Recipe({"backend-protocol": "GRPC"}, weight=4),
    "https-backend": Recipe({"backend-protocol": "HTTPS", "proxy-ssl-verify": "off"}, weight=4),
    "verified-backend": Recipe(
        {"backend-protocol": "HTTPS", "proxy-ssl-verify": "on", "proxy-ssl-secret": "default/ca"}, weight=1
    ),
    "secure-backends": Recipe({"secure-backends": "true"}, weight=2),
    "passthrough": Recipe({"ssl-passthrough": "true"}, weight=2),
    "redirect": Recipe({"permanent-redirect": "https://www.example.com"}, weight=4),
    "temporal": Recipe({"temporal-redirect": "https://status.example.com"}, weight=1),
    "app-root": Recipe({"app-root": "/dashboard"}, weight=3),
    "www": Recipe({"from-to-www-redirect": "true"}, weight=3),
    "limit": Recipe({"limit-rps": "20", "limit-burst-multiplier": "3"}, weight=4),
    "limit-connections": Recipe({"limit-connections": "10"}, weight=1),
    "bandwidth": Recipe({"limit-rate": "512"}, weight=1),
    "errors": Recipe({"custom-http-errors": "404,503", "default-backend": "error-pages"}, weight=3),
    "mirror": Recipe({"mirror-target": "https://shadow.example.com$request_uri"}, weight=1),
    "buffers": Recipe(
        {"proxy-buffer-size": "16k", "proxy-buffers-number": "8", "client-body-buffer-size": "1m"}, weight=6
    ),
    "vhost": Recipe({"upstream-vhost": "internal.example.com", "x-forwarded-prefix": "/shop"}, weight=2),
    "alias": Recipe({"server-alias": "~^tenant[0-9]+.example.com$"}, weight=1),
    "cookie-path": Recipe({"proxy-cookie-path": "~^/(.+) /", "proxy-redirect-from": "default"}, weight=1),
    "typo": Recipe({"proxy-body-sizes": "10m", "proxy_read_timeout": "60"}, weight=3),
    "bad-value": Recipe({"proxy-read-timeout": "3600s", "ssl-redirect": "yes"}, weight=4),
    "removed": Recipe({"influxdb-host": "127.0.0.1", "global-rate-limit": "100"}, weight=1),
    "tracing": Recipe({"enable-opentelemetry": "true", "enable-access-log": "false"}, weight=2),
    "digest": Recipe({"auth-type": "digest", "auth-secret": "users"}, weight=1),
    "fastcgi": Recipe({"backend-protocol": "FCGI"}, weight=1),
}  # fmt: skip


def realistic(count: int, *, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield Ingresses, their Services and Secrets; each recipe occurs, and canaries stand beside some.

    Args:
        count: The number of Ingresses.
        seed: The same seed gives the same objects.
    """
    choose = random.Random(seed)
    names = list(RECIPES)
    weights = [RECIPES[name].weight for name in names]
    for number in range(count):
        recipe = choose.choices(names, weights)[0] if number >= len(names) else names[number]
        namespace = choose.choice(("default", "shop", "billing", "search", "platform"))
        host = f"{recipe}-{number}.example.com" if number % 9 else f"team-{number % 4}.example.com"
        yield from _objects(f"{recipe}-{number}", namespace, host, RECIPES[recipe], number)
        if recipe == "plain" and number % 4 == 0:
            canary = {
                f"{PREFIX}canary": "true",
                f"{PREFIX}canary-weight": "10",
                f"{PREFIX}canary-by-header": "X-Canary",
            }
            yield from _pair(f"{recipe}-{number}-canary", namespace, host, RECIPES[recipe], canary, number)


def _objects(name: str, namespace: str, host: str, recipe: Recipe, number: int) -> Iterator[dict[str, Any]]:
    annotations = {f"{PREFIX}{key}": value for key, value in recipe.given.items()} | dict(recipe.other)
    yield from _pair(name, namespace, host, recipe, annotations, number)
    if recipe.given.get("auth-secret") and number % 3:
        yield _of("Secret", "users", namespace, data={"auth": "dTokYXByMSQ="})


def _pair(
    name: str, namespace: str, host: str, recipe: Recipe, annotations: dict[str, str], number: int
) -> Iterator[dict[str, Any]]:
    backend = {"service": {"name": name, "port": {"number": 80}}}
    paths = [{"path": path, "pathType": kind, "backend": backend} for path, kind in recipe.paths]
    spec: dict[str, Any] = {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": paths}}]}
    if recipe.tls:
        spec["tls"] = [{"hosts": [host], "secretName": f"{name}-tls"}]
    item = _of("Ingress", name, namespace, spec=spec)
    created = f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    item["metadata"] |= {"annotations": annotations, "creationTimestamp": created}
    yield item
    if number % 50 != 7:
        yield _of("Service", name, namespace, spec={"clusterIP": "10.96.0.1", "ports": [{"port": 80}]})


def _of(kind: str, name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    version = "networking.k8s.io/v1" if kind == "Ingress" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}
