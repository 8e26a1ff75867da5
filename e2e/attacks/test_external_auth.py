"""A client without an account, of an HTTPRoute whose requests a service must permit (filter ExternalAuth)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from e2e.attacks.gateway_api import route_of
from e2e.attacks.installation import Tenants, hosts
from e2e.cluster.client import Manifest, wait_until

pytestmark = pytest.mark.usefixtures("gateway_kinds")

SEEN = ("method", "path", "query", "body")


def guarded(infra: str, host: str, http: dict[str, Any], **auth: Any) -> Manifest:
    """Return an HTTPRoute to `web` whose requests the Service `auth` must permit."""
    settings = {"protocol": "HTTP", "backendRef": {"name": "auth", "port": 80}, "http": http, **auth}
    return route_of(infra, host.partition(".")[0], host, filters=[{"type": "ExternalAuth", "externalAuth": settings}])


def test_a_service_decides_about_each_request(tenants: Tenants, infra: str) -> None:
    host = f"auth.{tenants.domain}"
    tenants.victim.create("auth")
    tenants.victim.service("auth", {"app": "auth"})
    http = {"allowedHeaders": ["X-Team"], "allowedResponseHeaders": ["X-Pod", "X-Role"]}
    tenants.apply(guarded(infra, host, http, forwardBody={"maxSize": 20}))
    if not tenants.installation.runs_lua:
        found = wait_until(lambda: tenants.installation.routes(host), lambda got: len(got) == 2, "two records")
        assert [each["uri"] for each in found if "uri" in each] == [f"/__auth/{found[0]['uri'].split('/')[2]}/*"]
        return

    # The response of Pods to /status/NUMBER has this status.
    traffic = tenants.traffic
    traffic.until(lambda answer: answer.pod == "auth", host, "/status/401")
    sent = {"X-Team": "a", "X-Other": "b", "Authorization": "Basic c", "Cookie": "d=e"}
    refused = traffic.send(host, "/status/401?x=1&y", method="PUT", headers=sent, body="content")
    assert (refused.status, refused.pod) == (401, "auth")
    assert {name: refused.seen[name] for name in SEEN} == {
        "method": "PUT",
        "path": "/status/401",
        "query": "x=1&y",
        "body": "content",
    }
    received = {name: refused.received(name) for name in ("host", "x-team", "x-other", "authorization", "cookie")}
    assert received == {"host": host, "x-team": "a", "x-other": "", "authorization": "Basic c", "cookie": ""}
    assert refused.received("content-length") == "7"

    permitted = traffic.send(host, "/a%2Fb/?x=1", headers={"X-Pod": "forged", "X-Role": "forged"})
    assert (permitted.status, permitted.pod, permitted.seen["path"]) == (200, "web", "/a/b/")
    assert (permitted.received("x-pod"), permitted.received("x-role")) == ("auth", "")
    assert traffic.send(host, "/ok", method="POST", body="content").seen["body"] == "content"

    statuses = {path: traffic.send(host, path).status for path in ("/status/204", "/status/302", "/status/500")}
    assert statuses == {"/status/204": 403, "/status/302": 302, "/status/500": 500}
    assert traffic.send(host, "/ok", method="POST", body="x" * 21).status == 413
    assert traffic.send(host, "/ok", headers={"X-Apisix-Auth": "1"}).status == 403

    tenants.installation.api.delete("Service", "auth", namespace=tenants.victim.namespace)
    traffic.until_status(500, host, "/ok")


def test_requests_are_refused_if_the_service_does_not_respond(tenants: Tenants, infra: str) -> None:
    host = f"silent.{tenants.domain}"
    tenants.victim.service("auth", {"app": "nothing"})
    tenants.apply([guarded(infra, host, {"path": "/check"}), route_of(infra, "open", f"open.{tenants.domain}")])

    tenants.traffic.until_status(200, f"open.{tenants.domain}")

    if tenants.installation.runs_lua:
        tenants.traffic.until_status(503, host)
    else:
        assert sorted("/__auth/" in str(each) for each in tenants.installation.routes(host)) == [True, True]


def test_the_response_of_another_route_permits_nothing(tenants: Tenants, infra: str) -> None:
    host = f"other.{tenants.domain}"
    tenants.victim.service("auth", {"app": "web"})
    item = guarded(infra, host, {})
    (rule,) = item["spec"]["rules"]
    admin = {**rule, "matches": [{"path": {"type": "PathPrefix", "value": "/admin"}}]}
    item["spec"]["rules"] = [admin, {"backendRefs": rule["backendRefs"]}]
    tenants.apply(item)
    if not tenants.installation.runs_lua:
        return
    tenants.traffic.until_status(200, host, "/admin")

    gateway = tenants.installation.gateway
    own = [(key, each) for key, each in gateway.records("routes").items() if host in hosts(each)]
    (asked,) = (key for key, each in own if str(each.get("uri")).startswith("/__auth/"))
    httpx.delete(f"{gateway.admin_url}/routes/{asked}", headers={"X-API-KEY": gateway.admin_key}, trust_env=False)

    tenants.traffic.until_status(403, host, "/admin")
    assert tenants.traffic.send(host, "/").status == 200
