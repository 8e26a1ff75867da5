"""Stories of matching: which ApisixRoute rule matches a request, by path, host, method, address and expressions."""

from typing import Any

import pytest

from e2e.scene import Scene, rule

NOT_FOUND = 404


def expression(scope: str, name: str, op: str, want: str | list[str]) -> dict[str, Any]:
    side = {"set": want} if isinstance(want, list) else {"value": want}
    return {"subject": {"scope": scope, "name": name} if name else {"scope": scope}, "op": op, **side}


def test_exact_paths_and_prefixes_match(scene: Scene) -> None:
    scene.serve("exact", "prefix", "deeper")
    host = [scene.host]
    scene.route(
        "web",
        rule("exact", {"hosts": host, "paths": ["/shop"]}, "exact"),
        rule("prefix", {"hosts": host, "paths": ["/shop/*"]}, "prefix"),
        rule("deeper", {"hosts": host, "paths": ["/shop/sale/*"]}, "deeper"),
    )
    want = {
        "/shop": "exact",
        "/shop?a=1": "exact",
        "/shop/": "prefix",
        "/shop/a/b": "prefix",
        "/shop/sale/a": "deeper",
        "/shopping": "",
        "/": "",
    }
    scene.wait_live("web")
    assert {path: scene.send(path).pod for path in want} == want
    assert scene.send("/").status == NOT_FOUND


def test_an_exact_host_wins_over_a_wildcard_and_a_wildcard_over_no_host(scene: Scene) -> None:
    scene.serve("exact", "wildcard", "anywhere")
    path = f"/{scene.namespace}/*"
    scene.route(
        "web",
        rule("exact", {"hosts": [f"a.{scene.host}"], "paths": [path]}, "exact"),
        rule("wildcard", {"hosts": [f"*.{scene.host}"], "paths": [path]}, "wildcard"),
        rule("anywhere", {"paths": [path]}, "anywhere"),
    )
    want = {f"a.{scene.host}": "exact", f"b.{scene.host}": "wildcard", "other.example.org": "anywhere"}
    scene.wait_live("web")
    assert {host: scene.send(path, host=host).pod for host in want} == want
    assert scene.send("/elsewhere", host=f"a.{scene.host}").status == NOT_FOUND


def test_one_rule_matches_all_of_its_hosts_and_paths(scene: Scene) -> None:
    scene.serve("web")
    hosts = [f"{name}.{scene.host}" for name in ("a", "b")]
    scene.route("web", rule("all", {"hosts": hosts, "paths": ["/x", "/y/*"]}))
    scene.wait_live("web")
    assert {(host, path): scene.send(path, host=host).pod for host in hosts for path in ("/x", "/y/z")} == {
        (host, path): "web" for host in hosts for path in ("/x", "/y/z")
    }
    assert scene.send("/x").status == NOT_FOUND
    assert len(scene.names("routes")) == 1


def test_methods_choose_the_rule(scene: Scene) -> None:
    scene.serve("reader", "writer")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    scene.route(
        "web",
        rule("read", {**match, "methods": ["GET", "HEAD"]}, "reader"),
        rule("write", {**match, "methods": ["POST"]}, "writer"),
    )
    scene.wait_live("web")
    want = {"GET": "reader", "HEAD": "reader", "POST": "writer", "PUT": ""}
    assert {method: scene.send(method=method).pod for method in want} == want
    assert scene.send(method="PUT").status == NOT_FOUND


def test_header_cookie_and_query_choose_the_rule(scene: Scene) -> None:
    scene.serve("header", "cookie", "query", "default")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    subjects = (("Header", "X-User-Group"), ("Cookie", "group"), ("Query", "group"))
    special = [
        rule(
            scope.lower(),
            {**match, "exprs": [expression(scope, name, "Equal", "beta")]},
            scope.lower(),
            priority=10,
        )
        for scope, name in subjects
    ]
    scene.route("web", *special, rule("default", match, "default"))
    scene.wait_live("web")
    assert scene.send(headers={"x-user-group": "beta"}).pod == "header"
    assert scene.send(headers={"X-User-Group": "gamma"}).pod == "default"
    assert scene.send(headers={"Cookie": "a=b; group=beta"}).pod == "cookie"
    assert scene.send("/?group=beta").pod == "query"
    assert scene.send("/?group=b").pod == "default"
    want = [["http_x_user_group", "==", "beta"]]
    assert (scene.record("routes", "web_header") or {})["vars"] == want


OPERATORS: tuple[tuple[str, str | list[str], str, str], ...] = (
    ("Equal", "a", "a", "b"),
    ("NotEqual", "a", "b", "a"),
    ("GreaterThan", "5", "6", "5"),
    ("GreaterThanEqual", "5", "5", "4"),
    ("LessThan", "5", "4", "5"),
    ("LessThanEqual", "5", "5", "6"),
    ("In", ["a", "b"], "b", "c"),
    ("NotIn", ["a", "b"], "c", "b"),
    ("RegexMatch", "^a+$", "aaa", "AAA"),
    ("RegexNotMatch", "^a+$", "AAA", "aaa"),
    ("RegexMatchCaseInsensitive", "^a+$", "AAA", "b"),
    ("RegexNotMatchCaseInsensitive", "^a+$", "b", "AAA"),
)


def test_every_operator_matches_and_rejects(scene: Scene) -> None:
    scene.serve("web")
    scene.route(
        "web",
        *(
            rule(op, {"hosts": [scene.host], "paths": [f"/{op}"], "exprs": [expression("Header", "v", op, value)]})
            for op, value, _, _ in OPERATORS
        ),
    )
    scene.wait_live("web")
    got = {
        op: (scene.send(f"/{op}", headers={"v": hit}).status, scene.send(f"/{op}", headers={"v": miss}).status)
        for op, _, hit, miss in OPERATORS
    }
    assert got == {op: (200, NOT_FOUND) for op, *_ in OPERATORS}


def test_path_and_variable_scopes_and_all_expressions_must_hold(scene: Scene) -> None:
    scene.serve("web")
    exprs = [
        expression("Path", "", "RegexMatch", "^/v[0-9]+/"),
        expression("Variable", "request_method", "In", ["GET", "POST"]),
        expression("Query", "debug", "NotEqual", "1"),
    ]
    scene.route("web", rule("versions", {"hosts": [scene.host], "paths": ["/*"], "exprs": exprs}))
    scene.wait_live("web")
    assert scene.send("/v2/users").pod == "web"
    assert scene.send("/latest/users").status == NOT_FOUND
    assert scene.send("/old/v2/users").status == NOT_FOUND
    assert scene.send("/v2/users", method="DELETE").status == NOT_FOUND
    assert scene.send("/v2/users?debug=1").status == NOT_FOUND


def test_the_larger_priority_wins_and_edits_take_effect(scene: Scene) -> None:
    scene.serve("blue", "green")
    match = {"hosts": [scene.host], "paths": ["/*"]}

    def prefer(blue: int, green: int) -> None:
        scene.route("web", rule("blue", match, "blue", priority=blue), rule("green", match, "green", priority=green))

    prefer(2, 1)
    scene.until_pod("blue")
    scene.wait_live("web")
    assert scene.traffic.counts(20, scene.host) == {"blue": 20}
    prefer(2, 3)
    scene.until_pod("green")
    assert scene.traffic.counts(20, scene.host) == {"green": 20}


def test_priority_decides_between_two_objects(scene: Scene) -> None:
    scene.serve("old", "new")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    scene.route("old", rule("all", match, "old"))
    scene.until_pod("old")
    scene.route("new", rule("all", match, "new", priority=1))
    scene.until_pod("new")
    scene.delete("ApisixRoute", "new")
    scene.until_pod("old")


def test_client_addresses_are_matched_as_address_and_as_network(scene: Scene) -> None:
    scene.serve("web")

    def admit(*networks: str) -> None:
        scene.route("web", rule("all", {"hosts": [scene.host], "paths": ["/*"], "remoteAddrs": list(networks)}))

    admit("127.0.0.0/8")
    scene.until_pod("web")
    admit("10.9.0.0/16", "192.0.2.1")
    scene.until_status(NOT_FOUND)
    admit("10.9.0.0/16", "127.0.0.1")
    scene.until_pod("web")


def test_a_rule_with_every_field_of_match_is_one_whole_record(scene: Scene) -> None:
    scene.serve("web")
    match = {
        "hosts": [scene.host],
        "paths": ["/api/*", "/api"],
        "methods": ["GET"],
        "remoteAddrs": ["127.0.0.1"],
        "exprs": [expression("Query", "v", "In", ["1", "2"])],
    }
    timeout = {"connect": "3s", "send": "4s", "read": "5s"}
    manifest = rule("api", match, priority=7, websocket=True, timeout=timeout)
    scene.apply("ApisixRoute", "web", labels={"team": "shop"}, spec={"http": [manifest]})
    scene.until_pod("web", "/api/x?v=2")
    upstream = scene.record("upstreams", "web_80") or {}
    got = dict(scene.record("routes", "web_api") or {})
    for kept_by_the_gateway in ("create_time", "update_time", "status"):
        got.pop(kept_by_the_gateway, None)
    assert got == {
        "id": got["id"],
        "name": f"{scene.namespace}_web_api",
        "desc": "Created by apisix-ingress-controller, DO NOT modify it manually",
        "labels": {"managed-by": "apisix-ingress-controller", "team": "shop"},
        "hosts": [scene.host],
        "uris": ["/api/*", "/api"],
        "methods": ["GET"],
        "remote_addrs": ["127.0.0.1"],
        "vars": [["arg_v", "in", ["1", "2"]]],
        "priority": 7,
        "enable_websocket": True,
        "timeout": {"connect": 3, "send": 4, "read": 5},
        "upstream_id": upstream["id"],
    }


def test_a_renamed_rule_takes_over_and_a_removed_rule_stops_serving(scene: Scene) -> None:
    scene.serve("web")

    def rules(*names: str) -> None:
        scene.route("web", *(rule(name, {"hosts": [scene.host], "paths": [f"/{name}"]}) for name in names))

    rules("one", "two")
    scene.until_pod("web", "/two")
    upstream = scene.record("upstreams", "web_80")
    rules("one", "three")
    scene.until_pod("web", "/three")
    scene.until_status(NOT_FOUND, "/two")
    assert scene.names("routes") == {"web_one", "web_three"}
    assert scene.record("upstreams", "web_80") == upstream
    scene.delete("ApisixRoute", "web")
    scene.wait_record("upstreams", "web_80", lambda found: found is None, "to be gone")
    assert scene.names("routes") == set()


def test_kubectl_shows_hosts_paths_services_and_whether_it_is_live(
    scene: Scene, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--cluster") != "local":
        pytest.skip("kubectl is run by the local cluster only")
    scene.serve("web")
    scene.route("shown", rule("all", {"hosts": [scene.host], "paths": ["/shown/*"]}))
    scene.wait_live("shown")
    kubectl = request.getfixturevalue("local_cluster").kubectl
    header, row = kubectl("get", "ar", "shown", "-n", scene.namespace).splitlines()
    assert header.split() == ["NAME", "HOST", "PATH", "READY", "AGE", "MESSAGE"]
    assert row.split()[:4] == ["shown", scene.host, "/shown/*", "True"]
    assert row.endswith("Sync Successfully")
    header, row = kubectl("get", "ar", "shown", "-n", scene.namespace, "-o", "wide").splitlines()
    for column in ("HOSTS", "URIS", "SERVICES", "REASON"):
        assert column in header
    for value in (f'["{scene.host}"]', '["/shown/*"]', " web "):
        assert value in row
