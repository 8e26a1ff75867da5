"""A tenant who may create HTTPRoutes and ListenerSets: hosts, Services and paths of other teams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from e2e.attacks.gateway_api import ALL, route_of
from e2e.attacks.installation import Tenants
from e2e.cluster.client import Manifest, wait_until
from e2e.definitions.gateway_kinds import make

pytestmark = pytest.mark.usefixtures("gateway_kinds")


def judged(tenants: Tenants, name: str) -> list[str]:
    """Return the reasons of the conditions `Accepted` of an HTTPRoute of the hostile tenant."""
    item = tenants.installation.api.find("HTTPRoute", name, namespace=tenants.evil.namespace) or {}
    parents = (item.get("status") or {}).get("parents") or []
    return [each["reason"] for parent in parents for each in parent["conditions"] if each["type"] == "Accepted"]


def test_a_refused_listener_set_takes_no_route_offline(tenants: Tenants, infra: str) -> None:
    host = f"gw.{tenants.domain}"
    tenants.apply(route_of(infra, "web", host))
    tenants.traffic.until_status(200, host)
    for number, hostname in enumerate(("*.test", f"*.{tenants.domain}", host)):
        listener = {"name": "a", "port": 80, "protocol": "HTTP", "hostname": hostname, "allowedRoutes": ALL}
        parent = {"name": "gw", "namespace": infra}
        tenants.attack(make("ListenerSet", f"set{number}", parentRef=parent, listeners=[listener]))
    tenants.settled()

    assert tenants.traffic.counts(20, host) == {"web": 20}


PATHS: Mapping[str, Mapping[str, Any]] = {
    "prefix": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ".evil.test:1"},
    "prefix with a port": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ":1"},
    "prefix with a user": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "@evil.test:1"},
    "full": {"type": "ReplaceFullPath", "replaceFullPath": ".evil.test:1/v3/kv/put"},
}


def test_a_rewrite_of_an_http_route_does_not_leave_the_service(tenants: Tenants, infra: str) -> None:
    for number, change in enumerate(PATHS.values()):
        rewriting = {"type": "URLRewrite", "urlRewrite": {"path": change}}
        tenants.attack(route_of(infra, f"r{number}", f"r{number}.{tenants.domain}", "evil", filters=[rewriting]))
    for number in range(len(PATHS)):
        wait_until(partial(judged, tenants, f"r{number}"), bool, "a status")
    tenants.settled()

    hosts = {name: f"r{number}.{tenants.domain}" for number, name in enumerate(PATHS)}
    answers = {name: tenants.traffic.send(host, "/v1/routes") for name, host in hosts.items()}

    # A gateway that looked for another server would respond with 502 or 503.
    assert {(each.status, each.pod) for each in answers.values()} <= {(404, ""), (500, ""), (200, "evil")}
    for host in hosts.values():
        rewrites = [each["plugins"].get("proxy-rewrite", {}) for each in tenants.installation.routes(host)]
        values = [value for each in rewrites for value in (each.get("uri"), *each.get("regex_uri", ())[1::2]) if value]
        assert [value for value in values if not value.startswith("/")] == []


def foreign(tenants: Tenants, infra: str, host: str) -> list[Manifest]:
    """Return HTTPRoutes of the hostile tenant for hosts and Services of the victim."""
    every = route_of(infra, "every", host, "evil")
    del every["spec"]["hostnames"]
    other = route_of(infra, "service", f"service.{tenants.domain}")
    other["spec"]["rules"][0]["backendRefs"] = [{"name": "web", "namespace": tenants.victim.namespace, "port": 80}]
    mirror = {"requestMirror": {"backendRef": {"name": "web", "namespace": tenants.victim.namespace, "port": 80}}}
    mirroring = {"type": "RequestMirror", **mirror}
    exact = [{"path": {"type": "Exact", "value": "/login"}}]
    return [
        every,
        other,
        route_of(infra, "same", host, "evil", matches=exact),
        route_of(infra, "wild", f"*.{host.partition('.')[2]}", "evil", matches=exact),
        route_of(infra, "mirror", f"mirror.{tenants.domain}", "evil", filters=[mirroring]),
    ]


def test_no_http_route_takes_a_host_or_a_service_of_another_namespace(tenants: Tenants, infra: str) -> None:
    host = f"gw.zone.{tenants.domain}"
    tenants.apply(route_of(infra, "web", host))
    tenants.traffic.until_status(200, host)
    for each in foreign(tenants, infra, host):
        tenants.attack(each)
    tenants.settled()

    assert {tenants.traffic.send(host, path).pod for path in ("/", "/login", "/x")} == {"web"}
    assert {tenants.traffic.send(f"{name}.{tenants.domain}").pod for name in ("service", "mirror")} <= {"", "evil"}
