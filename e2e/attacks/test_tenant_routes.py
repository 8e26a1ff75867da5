"""A tenant who may create objects of this project: routes, plugins and consumers that harm others or the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from e2e.attacks.installation import Tenants
from e2e.cluster.client import KubeApiError, Manifest
from e2e.story import condition, route, says

STARS = ("/" + "*" * 28 + "Z", "/*a*a*a*a*a*a*a*a*Z", "/**/**/**/**/**/Z")
"""Paths for which a matcher that backtracks takes years."""


def test_no_path_keeps_the_controller_busy_when_an_operator_explains_a_url(tenants_of_own: Tenants) -> None:
    here = tenants_of_own
    host = f"shop.{here.domain}"
    here.apply(here.ingress("shop", host))
    here.traffic.until_status(200, host)
    for number, path in enumerate(STARS):
        here.attack(route(f"stars{number}.{here.domain}", name=f"stars{number}", service="evil", path=path))
    here.settled()
    controller = here.installation.controller
    long = "products/" + "a" * 1500
    urls = [f"http://{host}/{long}", *(f"http://stars{number}.{here.domain}/{long}" for number in range(len(STARS)))]

    got = [controller.probe(f"/status/api/explain?url={quote(url)}")[0] for url in urls]

    assert set(got) == {200}
    assert controller.probe("/healthz")[0] == 200
    here.settled()


def nested(levels: int) -> Mapping[str, Any]:
    """Return a schema of arrays in arrays."""
    return {"type": "string"} if levels == 0 else {"type": "array", "items": nested(levels - 1)}


def test_no_response_of_exponential_size_is_generated(tenants: Tenants) -> None:
    """The development gateway does not generate responses: no record may contain the schema."""
    host = f"mocked.{tenants.domain}"
    schema = {"type": "object", "properties": {"a": nested(20)}}
    tenants.attack(route(host, name="mocked", service="evil", plugins={"mocking": {"response_schema": schema}}))

    refused = says("False", "response_schema", "kubernetes.plugins: reviewed")
    api = tenants.installation.api
    api.wait("ApisixRoute", "mocked", refused, "to be refused", namespace=tenants.evil.namespace)

    assert tenants.installation.routes(host) == []
    assert tenants.traffic.send(host).status == 404


def poisons() -> Mapping[str, Manifest]:
    """Return routes whose records might break the gateway's other routes."""
    deep: object = "x"
    for _ in range(400):
        deep = {"a": deep}
    paths = ("/*/*", "/a*b", "/(", "/[", "/\\", "/%", "/%zz", "/a?b", "/#", "/:id", "/{x}", "/" + "a" * 4000)
    hosts = ("a..b", "*.*.test", "-a.test", "a_b.test", "xn--", "1.2.3.4", "[::1]", "a" * 63 + ".test", "ä.test")
    found: dict[str, Manifest] = {}
    for number, path in enumerate(paths):
        found[f"path {path[:20]}"] = route(f"p{number}.evil.test", path=path, service="evil")
    for host in hosts:
        found[f"host {host[:20]}"] = route(host, service="evil")
    for value in (1e300, -0.0, 10**30, "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "a\x7f"):
        found[f"value {value!r}"] = route("v.evil.test", service="evil", plugins={"echo": {"body": value}})
    for priority in (-(2**31), 2**31 - 1, 0):
        found[f"priority {priority}"] = route("pr.evil.test", service="evil", priority=priority)
    found["depth"] = route("d.evil.test", service="evil", plugins={"echo": {"headers": deep}})
    return found


def test_no_record_of_a_tenant_stops_the_routes_of_another(tenants: Tenants) -> None:
    host = f"shop.{tenants.domain}"
    tenants.apply(tenants.ingress("shop", host))
    tenants.traffic.until_status(200, host)

    broken = []
    for number, (name, manifest) in enumerate(poisons().items()):
        manifest["metadata"]["name"] = f"poison{number}"
        try:
            tenants.attack(manifest)
        except KubeApiError:
            continue  # The API server does not store it.
        mine = f"new{number}.{tenants.domain}"
        tenants.apply(route(mine, name=f"new{number}"))
        tenants.traffic.until(lambda answer: answer.pod == "web", mine)
        broken += [name] if tenants.traffic.send(host).pod != "web" else []

    assert broken == []
    tenants.settled()


COSTLY = "a{0,1000}a{0,1000}[bc]"
"""With a path of 7 kB, it occupies a worker of a gateway for more than ten seconds."""


def occupying(domain: str) -> list[Manifest]:
    """Return routes with which one small object, or one small request, would stop a gateway, each with a host."""

    def conditions(name: str, variable: str, operator: str, value: str) -> Manifest:
        subject = {"scope": "Variable", "name": variable}
        match = {"hosts": [f"{name}.{domain}"], "paths": ["/*"]}
        found = route("", name=name, service="evil")
        found["spec"]["http"][0]["match"] = match | {"exprs": [{"subject": subject, "op": operator, "value": value}]}
        return found

    def plugin(name: str, kind: str, **config: Any) -> Manifest:
        return route(f"{name}.{domain}", name=name, service="evil", plugins={kind: config})

    grow = {"regex": "a", "replace": "a" * 100, "scope": "global"}
    hidden = {"regex": f"#[\n{COSTLY}\n#]", "replace": "", "options": "jox"}
    crowd = route("", name="crowd", service="evil")
    names = [f"crowd.{domain}", *(f"crowd{number}.{domain}" for number in range(1500))]
    addresses = [f"10.{number // 250}.{number % 250}.0/24" for number in range(1500)]
    crowd["spec"]["http"][0]["match"] = {"hosts": names, "paths": ["/*"], "remoteAddrs": addresses}
    return [
        plugin("query", "degraphql", query=f"query($a:{'[' * 40}I{']' * 40}){{a}}"),
        plugin("variable", "proxy-rewrite", headers={"set": {"X-A": "$graphql_name"}}),
        plugin("multipart", "proxy-rewrite", headers={"set": {"X-A": "${post_arg.a}"}}),
        plugin(
            "searches",
            "data-mask",
            request=[{"type": "body", "name": f"$..x{n}", "action": "remove"} for n in range(50)],
        ),
        plugin("patterns", "ua-restriction", denylist=[f"bot{number}" for number in range(9000)]),
        plugin("redis", "limit-count", count=1, time_window=1, policy="redis", redis_host="203.0.113.9"),
        plugin("stream", "ai-proxy", provider="openai", override={"endpoint": "http://203.0.113.9/"}),
        plugin("slice", "proxy-rewrite", headers={"set": {"X-A": "${post_arg.a[0:1:0]}"}}),
        plugin("mask", "data-mask", request=[{"type": "query", "name": "$.a[0:1:0]", "action": "remove"}]),
        plugin("timers", "http-logger", uri="http://203.0.113.9/", batch_max_size=1, timeout=86400),
        plugin("signer", "google-cloud-logging", batch_max_size=1, auth_config={"private_key": "crafted"}),
        plugin("decades", "limit-req", rate=0.000001, burst=1000, key="http_x"),
        plugin("queue", "limit-conn", conn=1, burst=1000, default_conn_delay=1, key="http_x"),
        plugin("disk", "proxy-cache", cache_zone="disk_cache_one"),
        plugin("token", "jwe-decrypt", header="Authorization", forward_header="X-User"),
        plugin("blanks", "fault-injection", abort={"http_status": 200, "body": "${a" + " " * 60_000 + "b}"}),
        plugin("growth", "response-rewrite", filters=[grow] * 5),
        plugin("options", "response-rewrite", filters=[hidden]),
        plugin("ignored", "response-rewrite", body="a", vars=[["uri", "~~", COSTLY, "x", "^/a"]]),
        conditions("graphql", "graphql_name", "NotEqual", "x"),
        *(
            conditions(f"pattern{number}", "uri", "RegexMatch", pattern)
            for number, pattern in enumerate(
                (rf"^\c(Z|{COSTLY}\c)", rf"^\Q(\E|{COSTLY}\Q)\E", f"(?i:{COSTLY})^", f"(?x)^Z#(\n|{COSTLY}#)\n")
            )
        ),
        crowd,
    ]


def test_no_small_object_occupies_the_gateway(tenants: Tenants) -> None:
    host = f"shop.{tenants.domain}"
    tenants.apply(tenants.ingress("shop", host))
    tenants.traffic.until_status(200, host)
    evil = f"evil.{tenants.domain}"
    attacks = occupying(evil)
    tenants.attack(attacks)
    api, body = tenants.installation.api, f"query($a:{'[' * 40}I{']' * 40}){{a}}"
    for name in (each["metadata"]["name"] for each in attacks):
        api.wait("ApisixRoute", name, says("False"), "to be refused", namespace=tenants.evil.namespace)

    got = {
        each["metadata"]["name"]: tenants.traffic.send(
            f"{each['metadata']['name']}.{evil}",
            "/" + "a" * 5800,
            method="POST",
            headers={"Content-Type": "application/graphql"},
            body=body,
        ).status
        for each in attacks
    }

    assert {name for name, status in got.items() if status not in (404, 503)} == set()
    assert tenants.traffic.send(host).pod == "web"


def test_no_plugin_ends_a_response_early(tenants: Tenants) -> None:
    """A load balancer would take the rest for the response to the next request."""
    short = {"Content-Length": "2"}
    configs: dict[str, dict[str, Any]] = {
        "rewrite": {"response-rewrite": {"headers": {"set": short}}},
        "abort": {"fault-injection": {"abort": {"http_status": 200, "body": "a long response", "headers": short}}},
        "mocked": {"mocking": {"response_example": "a long response", "response_headers": short}},
    }
    for name, plugins in configs.items():
        tenants.attack(route(f"{name}.{tenants.domain}", name=name, service="evil", plugins=plugins))
    api = tenants.installation.api
    for name in configs:
        refused = says("False", "frames the response")
        api.wait("ApisixRoute", name, refused, "to be refused", namespace=tenants.evil.namespace)

    assert {tenants.traffic.send(f"{name}.{tenants.domain}").status for name in configs} == {503}


def test_retries_of_nodes_that_are_not_reachable_do_not_occupy_the_gateway(tenants: Tenants) -> None:
    host, evil = f"shop.{tenants.domain}", f"retry.{tenants.domain}"
    tenants.apply(tenants.ingress("shop", host))
    tenants.traffic.until_status(200, host)
    served = route(evil, name="retry")
    del served["spec"]["http"][0]["backends"]
    served["spec"]["http"][0]["upstreams"] = [{"name": "retry"}]
    nodes = {"externalNodes": [{"type": "Domain", "name": "2001:db8::1", "port": 81}], "retries": 2**31 - 1}
    kind = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixUpstream", "metadata": {"name": "retry"}}
    tenants.attack([{**kind, "spec": nodes}, served])
    api = tenants.installation.api
    api.wait("ApisixUpstream", "retry", says("False", "retries"), "to be refused", namespace=tenants.evil.namespace)

    tenants.traffic.until_status(503, evil)

    assert tenants.traffic.send(host).pod == "web"


def consumer(name: str, **parameter: Any) -> Manifest:
    """Return an ApisixConsumer."""
    version = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixConsumer", "metadata": {"name": name}}
    return {**version, "spec": {"ingressClassName": "apisix", "authParameter": parameter}}


def test_probes_and_names_of_nodes_do_not_occupy_the_gateway(tenants: Tenants) -> None:
    """A gateway starts ten probes every second, even if a server ends none of them, and resolves all names in turn."""
    domain, api = tenants.domain, tenants.installation.api
    interval = {"interval": "1s"}
    active = {"type": "http", "httpPath": "/", "timeout": 86400, "healthy": interval, "unhealthy": interval}

    def upstream(name: str, hosts: list[str], **spec: Any) -> Manifest:
        nodes = [{"type": "Domain", "name": host, "port": 80} for host in hosts]
        made = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixUpstream", "metadata": {"name": name}}
        return made | {"spec": {"externalNodes": nodes, **spec}}

    tenants.attack(
        [
            upstream("probed", ["203.0.113.9"], healthCheck={"active": active}),
            upstream("named", [f"x{number}.{domain}" for number in range(300)]),
            *(
                route(f"{name}.evil.{domain}", name=name, backends=[], upstreams=[{"name": name}])
                for name in ("probed", "named")
            ),
        ]
    )
    for name, words in {"probed": "checks are left out", "named": "host names"}.items():
        api.wait("ApisixUpstream", name, says("False", words), "to be limited", namespace=tenants.evil.namespace)
    tenants.settled()

    assert [each for each in tenants.installation.gateway.records("upstreams").values() if "checks" in each] == []
    assert tenants.traffic.send(f"named.evil.{domain}").status == 503


def test_a_consumer_does_not_take_over_credentials_of_another_namespace(tenants: Tenants) -> None:
    host, key, password = f"keys.{tenants.domain}", "the-key-of-the-victim", "the-password-of-the-victim"
    secured = route(host, name="keys", plugins={"key-auth": {}}, path="/key")
    basic = route(host, name="basic", plugins={"basic-auth": {}}, path="/basic")
    tenants.apply(
        [
            consumer("me", keyAuth={"value": {"key": key}}),
            consumer("boss", basicAuth={"value": {"username": "boss", "password": password}}),
            secured,
            basic,
        ]
    )
    basic_header = {"Authorization": "Basic Ym9zczp0aGUtcGFzc3dvcmQtb2YtdGhlLXZpY3RpbQ=="}
    tenants.traffic.until_status(200, host, "/key", headers={"apikey": key})
    tenants.traffic.until_status(200, host, "/basic", headers=basic_header)
    for attempt in (
        consumer("me", keyAuth={"value": {"key": key}}),
        consumer("same", basicAuth={"value": {"username": "boss", "password": "mine-instead"}}),
        consumer("env", keyAuth={"value": {"key": "$env://HOME"}}),
        consumer("secret", keyAuth={"value": {"key": "$secret://vault/1/a"}}),
        consumer("line", keyAuth={"value": {"key": "a\nb"}}),
        consumer("jwt", jwtAuth={"value": {"key": "k", "algorithm": "none", "secret": "x"}}),
        consumer("rsa", jwtAuth={"value": {"key": "r", "algorithm": "RS256", "public_key": "junk"}}),
    ):
        with suppress(KubeApiError):  # The API server stores some of them not.
            tenants.attack(attempt)
    tenants.settled()

    assert tenants.traffic.send(host, "/key", headers={"apikey": key}).pod == "web"
    assert tenants.traffic.send(host, "/basic", headers=basic_header).pod == "web"
    mine = {"Authorization": "Basic Ym9zczptaW5lLWluc3RlYWQ="}
    assert tenants.traffic.send(host, "/basic", headers=mine).status == 401
    for stolen in ("$env://HOME", "/root", "none"):
        assert tenants.traffic.send(host, "/key", headers={"apikey": stolen}).status == 401
    found = tenants.installation.api.get("ApisixConsumer", "me", namespace=tenants.victim.namespace)
    assert condition(found)["status"] == "True"
