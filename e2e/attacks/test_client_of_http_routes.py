"""A client without an account, of HTTPRoutes: paths that lead past a guard, or to requests of the gateway itself."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import quote

import pytest

from e2e.attacks.gateway_api import route_of
from e2e.attacks.installation import Tenants
from e2e.cluster.client import wait_until
from e2e.traffic import RequestLoop

pytestmark = pytest.mark.usefixtures("gateway_kinds")

KEY_AUTH: Any = {
    "apiVersion": "apisix.apache.org/v2",
    "kind": "ApisixPluginConfig",
    "metadata": {"name": "keys"},
    "spec": {"plugins": [{"name": "key-auth", "enable": True}]},
}
WITH_KEY = {
    "type": "ExtensionRef",
    "extensionRef": {"group": "apisix.apache.org", "kind": "ApisixPluginConfig", "name": "keys"},
}


def guarded(infra: str, host: str, pattern: str) -> Any:
    """Return an HTTPRoute with paths that require a key, and others that do not."""
    item = route_of(infra, host.partition(".")[0], host)
    (rule,) = item["spec"]["rules"]
    path = {"type": "RegularExpression", "value": pattern}
    item["spec"]["rules"] = [{**rule, "matches": [{"path": path}], "filters": [WITH_KEY]}, rule]
    return item


def test_a_line_break_in_a_path_does_not_lead_past_a_regular_expression(tenants: Tenants, infra: str) -> None:
    host = f"breaks.{tenants.domain}"
    tenants.apply([KEY_AUTH, guarded(infra, host, "/(api|v1)/admin/.*")])
    tenants.traffic.until_status(401, host, "/api/admin/5")
    tenants.traffic.until_status(200, host)

    sent = {path: tenants.traffic.send(host, f"/api/admin/{path}").status for path in ("5", "%0a5", "5%0a6", "%0d%0a5")}

    assert set(sent.values()) == {401}


def test_a_path_that_is_too_long_for_a_regular_expression_is_not_open(tenants: Tenants, infra: str) -> None:
    host = f"long.{tenants.domain}"
    tenants.apply([KEY_AUTH, guarded(infra, host, "/secure/((a|b)(/)?)*")])
    tenants.traffic.until_status(401, host, "/secure/ab")
    tenants.traffic.until_status(200, host)

    sent = [tenants.traffic.send(host, f"/secure/{'ab' * (length // 2)}") for length in (20, 2000, 4000, 5900)]

    assert {answer.status for answer in sent} <= {401, 500}


ORDERS = (("a", "b"), ("c", "d", "a", "b"), ("b", "a"), ("d", "b", "c", "a"), ("a", "b"))
"""Guarded paths of an HTTPRoute, in the order of their rules, after each edit."""


def test_an_edit_of_rules_does_not_open_a_guarded_path(tenants: Tenants, infra: str) -> None:
    host = f"edited.{tenants.domain}"
    item = route_of(infra, "edited", host)
    (rule,) = item["spec"]["rules"]
    paths = {name: [{"path": {"type": "PathPrefix", "value": f"/{name}"}}] for name in "abcd"}
    versions = []
    for order in ORDERS:
        rules = [{**rule, "matches": paths[name], "filters": [WITH_KEY]} for name in order]
        versions.append({**item, "spec": {**item["spec"], "rules": [*rules, rule]}})
    tenants.apply([KEY_AUTH, versions[0]])
    tenants.traffic.until_status(401, host, "/a")
    tenants.traffic.until_status(200, host)

    with RequestLoop(tenants.traffic, host, "/a", pause=0) as requests:
        for version in versions[1:] * 2:
            tenants.apply(version)
            tenants.settled()

    assert {answer.status for _, answer in requests.answers} == {401}, tenants.installation.timeline(requests)


TIMEOUT = 10.0
SMUGGLED = "GET /endless HTTP/1.1\r\nHost: {host}\r\nX-Real-IP: 10.9.9.9\r\n\r\n"


def test_a_copied_path_does_not_add_requests(tenants: Tenants, infra: str) -> None:
    """They would have the address of the gateway, or any other one: gateways trust X-Real-IP in their own requests."""
    if not tenants.installation.runs_lua:
        pytest.skip("the development gateway copies no requests; tests/unit/translation/gateway read the records")
    copied, closed, target = (f"{name}.{tenants.domain}" for name in ("copied", "closed", "target"))
    for name in ("copies", "private"):
        tenants.victim.create(name)
        tenants.victim.service(name, {"app": name})
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copies", "port": 80}}}
    only_it = {"whitelist_source_range": "10.9.9.9/32"}
    tenants.apply(
        [
            route_of(infra, "copied", copied, filters=[mirror]),
            route_of(infra, "target", target, service="copies"),
            tenants.ingress("closed", closed, "/endless", service="private", **only_it),
            tenants.ingress("count", closed, "/unfinished", service="private"),
        ]
    )
    tenants.traffic.until_status(403, closed, "/endless")
    tenants.traffic.until_status(200, target, "/unfinished")
    tenants.traffic.until_status(200, closed, "/unfinished")
    tenants.traffic.until_status(200, copied)

    own = f"HTTP/1.1\r\nHost: {copied}\r\n\r\n"
    tenants.traffic.send(copied, quote(f"/a {own}{SMUGGLED.format(host=closed)}GET /b HTTP/1.1\r\nX: "))
    with socket.create_connection(tenants.traffic.address, timeout=TIMEOUT) as connection:
        connection.sendall(f"GET /endless HTTP/1.1\r\nHost: {copied}\r\n\r\n".encode())
        wait_until(lambda: tenants.traffic.send(target, "/unfinished").text, lambda text: text == "1", "a later copy")

    assert tenants.traffic.send(closed, "/unfinished").text == "0"
