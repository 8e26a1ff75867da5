"""Parts of the routes of a host: plugins, functions and responses; and the objects of several tests."""

from __future__ import annotations

from typing import Any

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.objects import SERVICE, ingress
from tests.unit.translation.objects import pem


def routes(outcome: Outcome) -> list[FrozenJson]:
    """Return the routes in the order in which they are tried."""
    found = [record.body for record in outcome.records if record.key.kind == "routes"]
    return sorted(found, key=lambda body: -body["priority"])


def status(body: FrozenJson) -> int | None:
    """Return the response of a route without a backend."""
    found = body.get("plugins", {}).get("fault-injection")
    return found["abort"]["http_status"] if found else None


SECRET = {
    "kind": "Secret",
    "metadata": {"name": "ca", "namespace": "shop"},
    "stringData": {"ca.crt": pem().certificate},
}


def config(**data: str) -> dict[str, object]:
    """Return the ConfigMap of ingress-nginx; underscores in keys are dashes."""
    given = {key.replace("_", "-"): text for key, text in data.items()}
    return {"kind": "ConfigMap", "metadata": {"name": "config", "namespace": "ingress-nginx"}, "data": given}


def redirecting(got: list[FrozenJson]) -> list[FrozenJson]:
    return [body["plugins"] for body in got if "redirect" in body.get("plugins", {})]


def asking(body: FrozenJson) -> FrozenJson:
    """Return the data of a route's function that sends requests to backends instead of the gateway; or empty."""
    plugin = body.get("plugins", {}).get("serverless-post-function", {})
    return plugin["ingress_nginx"] if plugin.get("phase") == "before_proxy" else {}


def early(body: FrozenJson) -> FrozenJson:
    """Return the data of a route's functions that run before the request to the backend."""
    found: FrozenJson = body.get("plugins", {}).get("serverless-pre-function", {}).get("ingress_nginx", {})
    return found


def functions(body: FrozenJson) -> list[str]:
    """Return the functions of a route that run before the request to the backend."""
    found: list[str] = body.get("plugins", {}).get("serverless-pre-function", {}).get("functions", [])
    return found


TRUSTING: tuple[tuple[dict[str, Any], ...], ...] = (
    (ingress("web", ("/", "Prefix"), auth_url="http://auth.example/", auth_response_headers="X-Auth-User"),),
    (SECRET, ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", auth_tls_verify_client="optional")),
    (
        ingress("web", ("/", "Prefix")),
        ingress("other", ("/", "Prefix"), age=1, service="other", canary="true", canary_by_header="X_Canary"),
        {**SERVICE, "metadata": {"name": "other", "namespace": "shop"}},
    ),
)
