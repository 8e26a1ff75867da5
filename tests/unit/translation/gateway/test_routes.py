"""Routes: attachment, filters and backends."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from apisix_ingress.model.decoders import decode_custom
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.gateway_matches import MOST_VALUES, RankedMatch, match_values
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import CLASS, gateway, listener, of_parents, route, rule
from tests.unit.translation.objects import OPTIONS, make, service
from tests.unit.translation.settling import bodies, prepare, problems, settle
from translation.core import builder, context
from translation.gateway.routes import http
from translation.gateway.routes.precedence import by_priority
from translation.plugins.mirrors import RAW_PATH

NAMED = replace(OPTIONS, ingress_class="ours")
WELL = {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}


def served(*objects: JsonObject, entry: JsonObject | None = None) -> World:
    return settle(CLASS, entry or gateway(), service(), *objects)


def record(found: World, prefix: str = "HTTPRoute") -> dict[str, Any]:
    (body,) = (dict(each) for each in bodies(found).values() if str(each.get("name", "")).startswith(prefix))
    return body


def plugins(*filters: JsonObject, path: str = "/", entry: JsonObject | None = None) -> dict[str, Any]:
    found = served(route(rule(*filters, matches=[{"path": {"value": path}}])), entry=entry)
    assert of_parents(found) == [WELL]
    got: dict[str, Any] = record(found).get("plugins", {})
    return got


# Attachment.


@pytest.mark.parametrize(
    ("parent", "reason"),
    [
        ({}, "Accepted"),
        ({"sectionName": "http"}, "Accepted"),
        ({"port": 80}, "Accepted"),
        ({"sectionName": "absent"}, "!NoMatchingParent"),
        ({"port": 81}, "!NoMatchingParent"),
        ({"sectionName": "tcp"}, "!NotAllowedByListeners"),
    ],
)
def test_a_parent_is_a_listener_by_name_and_port(parent: JsonObject, reason: str) -> None:
    entry = gateway(listener(), listener("tcp", 9000, "TCP"))
    found = served(route(rule(), parentRefs=[{"name": "gw", **parent}]), entry=entry)
    assert of_parents(found)[0]["Accepted"] == reason
    assert bool(found.attachments.counts) == (reason == "Accepted")


@pytest.mark.parametrize(
    ("allowed", "namespace", "accepted"),
    [
        ({"from": "Same"}, "other", False),
        ({"from": "All"}, "other", True),
        ({"from": "None"}, "default", False),
        ({"from": "Selector"}, "other", False),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}, "other", True),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}, "absent", False),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "b"}}}, "other", False),
    ],
)
def test_namespaces_that_a_listener_allows(allowed: JsonObject, namespace: str, accepted: bool) -> None:
    entry = gateway(listener(allowedRoutes={"namespaces": allowed}))
    other = make("Namespace", "other", namespace="", labels={"team": "a"})
    app = route(rule(), namespace=namespace, parentRefs=[{"name": "gw", "namespace": "default"}])
    found = served(app, other, entry=entry)
    assert of_parents(found, namespace=namespace)[0]["Accepted"] == (
        "Accepted" if accepted else "!NotAllowedByListeners"
    )


@pytest.mark.parametrize(
    ("operator", "values", "accepted"),
    [
        ("In", ["a", "b"], True),
        ("NotIn", ["a"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Near", [], False),
    ],
)
def test_expressions_of_a_selector(operator: str, values: list[str], accepted: bool) -> None:
    expression = {"key": "team", "operator": operator, "values": values}
    allowed = {"from": "Selector", "selector": {"matchExpressions": [expression]}}
    entry = gateway(listener(allowedRoutes={"namespaces": allowed}))
    found = served(route(rule()), make("Namespace", "default", namespace="", labels={"team": "a"}), entry=entry)
    assert (of_parents(found)[0]["Accepted"] == "Accepted") == accepted


def test_a_route_without_a_hostname_of_the_listener_is_refused() -> None:
    found = served(route(rule(), hostnames=["b.test"]), entry=gateway(listener(hostname="*.a.test")))
    assert of_parents(found) == [{"Accepted": "!NoMatchingListenerHostname", "ResolvedRefs": "ResolvedRefs"}]
    assert problems(found)["HTTPRoute default/app"] == ["NoMatchingListenerHostname"]


@pytest.mark.parametrize(
    "parent",
    [{"name": "absent"}, {"kind": "Service", "name": "gw"}, {"kind": "ListenerSet", "name": "gw"}, {"name": 1}],
)
def test_foreign_parents_are_ignored(parent: JsonObject) -> None:
    found = served(route(rule(), parentRefs=[parent]))
    assert ObjectKey("HTTPRoute", "default", "app") not in found.reports


def test_what_cannot_be_read_or_done_keeps_the_last_good_records() -> None:
    for broken, code in ((route({"matches": 1}), "InvalidSpec"), (route(rule(retry={})), "UnsupportedValue")):
        found = served(broken)
        assert code in problems(found)["HTTPRoute default/app"]
        assert not found.attachments.counts
    found = served(route(rule(sessionPersistence={}), kind="GRPCRoute"), route({"backendRefs": 1}, kind="TCPRoute"))
    assert of_parents(found, "GRPCRoute")[0]["Accepted"] == "!UnsupportedValue"
    assert problems(found)["TCPRoute default/app"] == ["InvalidSpec"]


# Filters.


def header(kind: str, **changes: Any) -> JsonObject:
    name = "requestHeaderModifier" if kind == "RequestHeaderModifier" else "responseHeaderModifier"
    return {"type": kind, name: changes}


SET = {"set": [{"name": "X-A", "value": "1"}]}


def test_header_changes_of_a_rule_and_of_its_backend_add_up() -> None:
    more = header("RequestHeaderModifier", set=[{"name": "X-B", "value": "2"}], remove=["X-C"])
    assert plugins(header("RequestHeaderModifier", **SET, remove=["X-D"]), more) == {
        "proxy-rewrite": {"headers": {"set": {"X-A": "1", "X-B": "2"}, "remove": ["X-D", "X-C"]}}
    }
    backend = {"name": "web", "port": 80, "filters": [more]}
    found = served(route({"filters": [header("RequestHeaderModifier", **SET)], "backendRefs": [backend]}))
    assert record(found)["plugins"]["proxy-rewrite"]["headers"] == {"set": {"X-A": "1", "X-B": "2"}, "remove": ["X-C"]}


def test_backends_with_headers_of_their_own_are_marked_first() -> None:
    first = {"name": "web", "port": 80, "weight": 3, "filters": [header("RequestHeaderModifier", **SET)]}
    found = served(route({"backendRefs": [first, {"name": "web", "port": 80}]}))
    got = record(found)["plugins"]
    assert got["traffic-label"]["rules"][0]["actions"] == [
        {"set_headers": {"X-A": "1", "X-Apisix-Backend": "0"}, "weight": 3},
        {"set_headers": {"X-Apisix-Backend": "1"}, "weight": 1},
    ]
    assert len(got["traffic-split"]["rules"]) == 2
    added = {**first, "filters": [header("RequestHeaderModifier", add=[{"name": "X-A", "value": "1"}])]}
    refused = served(route({"backendRefs": [added, {"name": "web", "port": 80}]}))
    assert of_parents(refused)[0]["Accepted"] == "!UnsupportedValue"


def test_other_filters_of_backends_are_refused() -> None:
    backend = {"name": "web", "port": 80, "filters": [{"type": "URLRewrite", "urlRewrite": {}}]}
    assert of_parents(served(route({"backendRefs": [backend]})))[0]["Accepted"] == "!UnsupportedValue"


def by_prefix(new: str) -> JsonObject:
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": new}


@pytest.mark.parametrize(
    ("change", "path", "want"),
    [
        ({"type": "ReplaceFullPath", "replaceFullPath": "/new"}, "/old", {"uri": "/new"}),
        ({"type": "ReplaceFullPath"}, "/old", {"uri": "/"}),
        (
            by_prefix("/n"),
            "/o",
            {"regex_uri": ["^/o(/[\\s\\S]*)?$", "/n$1"]},
        ),
        (
            by_prefix("/"),
            "/o",
            {"regex_uri": ["^/o(?:/([\\s\\S]*))?$", "/$1"]},
        ),
        (by_prefix("/n"), "/", {"regex_uri": ["^/([\\s\\S]*)$", "/n/$1"]}),
    ],
)
def test_paths_are_rewritten(change: JsonObject, path: str, want: JsonObject) -> None:
    assert plugins({"type": "URLRewrite", "urlRewrite": {"path": change}}, path=path) == {"proxy-rewrite": want}


@pytest.mark.parametrize(
    "change",
    [
        {"type": "ReplaceFullPath", "replaceFullPath": ".evil.test/x"},
        {"type": "ReplacePrefixMatch", "replacePrefixMatch": ".evil.test:2379"},
        {"type": "ReplacePrefixMatch", "replacePrefixMatch": "$http_x"},
    ],
)
@pytest.mark.parametrize("kind", ["URLRewrite", "RequestRedirect"])
def test_a_replacement_that_is_not_a_path_is_refused(kind: str, change: JsonObject) -> None:
    name = {"URLRewrite": "urlRewrite", "RequestRedirect": "requestRedirect"}[kind]
    found = served(route(rule({"type": kind, name: {"path": change}})))

    assert of_parents(found)[0]["Accepted"] == "!UnsupportedValue"
    field = f"replace{change['type'].removeprefix('Replace')}"
    (got,) = (problem for report in found.reports.values() for problem in report.problems)
    assert str(got) == f"spec.rules[0].filters: {name}.path.{field} does not begin with /; write a path"
    assert not any(path.startswith("routes/") for path in bodies(found))


@pytest.mark.parametrize(
    ("redirect", "port", "want"),
    [
        ({}, 80, "http://$host$request_uri"),
        ({}, 8080, "http://$host:8080$request_uri"),
        ({"scheme": "https"}, 8080, "https://$host$request_uri"),
        ({"scheme": "https", "port": 443}, 80, "https://$host$request_uri"),
        ({"port": 8443, "hostname": "b.test"}, 80, "http://b.test:8443$request_uri"),
    ],
)
def test_redirects(redirect: JsonObject, port: int, want: str) -> None:
    got = plugins({"type": "RequestRedirect", "requestRedirect": redirect}, entry=gateway(listener(port=port)))
    assert got == {"redirect": {"uri": want, "ret_code": 302}}


def test_filters_that_exclude_each_other_or_are_unknown_are_refused() -> None:
    both = ({"type": "RequestRedirect", "requestRedirect": {}}, {"type": "URLRewrite", "urlRewrite": {}})
    assert of_parents(served(route(rule(*both))))[0]["Accepted"] == "!IncompatibleFilters"
    assert of_parents(served(route(rule({"type": "ExternalAuth"}))))[0]["Accepted"] == "!UnsupportedValue"


def mirror(service: str = "web", **share: Any) -> JsonObject:
    return {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": service, "port": 80}, **share}}


def test_a_grpc_route_with_a_mirror_is_not_accepted() -> None:
    """A gateway would connect to itself by HTTP and copy nothing."""
    found = served(route(rule(mirror()), kind="GRPCRoute"))
    assert of_parents(found, "GRPCRoute")[0]["Accepted"] == "!UnsupportedValue"


def test_mirrors_are_chained_by_their_share() -> None:
    half = mirror(fraction={"numerator": 1, "denominator": 2})
    found = served(route(rule(half, mirror(), mirror(percent=0)), hostnames=["a.test"]))
    named = sorted((str(body["name"]), body) for body in bodies(found).values() if "uri" in body or "uris" in body)
    (_, main), (_, first), (_, second) = named
    assert "sample_ratio" not in main["plugins"]["proxy-mirror"]
    assert first["plugins"]["proxy-mirror"]["sample_ratio"] == 0.5
    assert "proxy-mirror" not in second["plugins"]
    assert first["hosts"] == second["hosts"] == ["a.test"]


def test_copies_have_the_path_as_the_client_wrote_it() -> None:
    found = served(route(rule(mirror(), mirror())))

    copying = [body["plugins"]["proxy-mirror"] for body in bodies(found).values() if "proxy-mirror" in str(body)]

    assert [each["_meta"] for each in copying] == [{"pre_function": RAW_PATH}] * 2


def test_a_mirror_that_does_not_exist_is_skipped_and_reported() -> None:
    found = served(route(rule(mirror("absent"))))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "!BackendNotFound"}]
    assert record(found).get("plugins", {}) == {}


def test_cors() -> None:
    every = {"allowOrigins": ["*"], "allowMethods": ["*"], "allowCredentials": True, "exposeHeaders": ["X"]}
    got = plugins({"type": "CORS", "cors": every})
    assert got["cors"]["allow_origins"] == got["cors"]["allow_methods"] == "**"
    assert got["cors"]["expose_headers"] == "X"
    assert got["response-rewrite"]["vars"] == [["request_method", "==", "OPTIONS"]]


@pytest.mark.parametrize("credentials", [False, True])
def test_cors_without_lists_permits_what_browsers_always_permit(credentials: bool) -> None:
    got = plugins({"type": "CORS", "cors": {"allowOrigins": ["https://a.test"], "allowCredentials": credentials}})
    assert "response-rewrite" not in got
    assert got["cors"]["allow_methods"] == "GET,HEAD,POST"
    assert got["cors"]["allow_headers"] == "Accept,Accept-Language,Content-Language,Range"


@pytest.mark.parametrize(
    ("origin", "want"),
    [
        ("https://a.example.org", True),
        ("https://a.b.example.org", True),
        ("https://example.org", False),
        ("https://.example.org", False),
        ("https://..example.org", False),
        ("https://evil.test/.example.org", False),
        ("https://evil.test?https://a.example.org", False),
    ],
)
def test_wildcards_of_cors_stand_for_names(origin: str, want: bool) -> None:
    got = plugins({"type": "CORS", "cors": {"allowOrigins": ["https://*.example.org"]}})
    (pattern,) = got["cors"]["allow_origins_by_regex"]
    assert bool(re.search(pattern, origin)) == want


@pytest.mark.parametrize(("most", "want"), [(4, []), (3, ["TooLarge"])])
def test_a_route_of_a_team_may_have_a_number_of_matches_and_listeners(
    most: int, want: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOST_RECORDS", most)
    web = route(rule(matches=[{"path": {"value": "/a"}}, {"path": {"value": "/b"}}]))
    both = gateway(listener("one", hostname="1.test"), listener("two", hostname="2.test"))

    found = settle(CLASS, both, service(), web, options=replace(OPTIONS, plugins="reviewed"))

    assert problems(found).get("HTTPRoute default/app", []) == want
    assert problems(settle(CLASS, both, service(), web)).get("HTTPRoute default/app", []) == []


@pytest.mark.parametrize(("limit", "most"), [((context, "MOST_BYTES"), 2**16), ((builder, "MOST_ENTRIES"), 200)])
def test_no_more_records_are_generated_than_permitted(
    limit: tuple[ModuleType, str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matches times listeners: a route of 7 kB could generate 262,144 records."""
    asked: list[int] = []

    def counted(obj: CustomObject, match: RankedMatch, *given: Any, **named: Any) -> dict[int, list[str]]:
        asked.append(match.match)
        return by_priority(obj, match, *given, **named)

    monkeypatch.setattr(*limit, most)
    monkeypatch.setattr(http, "by_priority", counted)
    matches = [{"path": {"type": "Exact", "value": f"/{number}"}} for number in range(64)]
    many = gateway(*(listener(f"l{number}", hostname=f"{number}.test") for number in range(64)))

    found = settle(CLASS, many, service(), route(rule(matches=matches)), options=replace(OPTIONS, plugins="reviewed"))

    assert "TooLarge" in str(problems(found))
    assert [each for each in bodies(found).values() if each["name"].startswith("HTTPRoute")] == []
    assert 0 < len(asked) < 300


def test_a_dot_in_a_regular_expression_matches_a_line_break() -> None:
    """In the encoded path that other implementations match, it is `%0a`."""
    match = {"path": {"type": "RegularExpression", "value": "/admin/.*"}}

    got = record(served(route(rule(matches=[match]))))

    assert [condition for condition in got["vars"] if condition[0] == "uri"] == [["uri", "~~", "^(?s:/admin/.*)$"]]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_guarded_regular_expression_that_may_fail_has_a_route_for_errors(is_guarded: bool) -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [{"name": "key-auth", "enable": True}]})
    filters = [extension()] if is_guarded else []
    match = {"path": {"type": "RegularExpression", "value": "/a/((b|c)/?)*"}}

    found = served(route(rule(*filters, matches=[match])), config)

    error = {"fault-injection": {"abort": {"http_status": 500}}}
    errors = [body for body in bodies(found).values() if body.get("plugins") == error]
    failing = [["uri", "!", "~~", "^(?:[\\s\\S]*?(?:^(?s:/a/((b|c)/?)*)$)|)"], ["uri", "~*", "^/a/"]]
    assert [[list(each) for each in body["vars"] if each[0] == "uri"] for body in errors] == [failing] * is_guarded


def extension(kind: str = "ApisixPluginConfig", group: str = "apisix.apache.org") -> JsonObject:
    return {"type": "ExtensionRef", "extensionRef": {"group": group, "kind": kind, "name": "pc"}}


@pytest.mark.parametrize("spec", [None, {"ingressClassName": "other"}])
def test_a_missing_extension_results_in_500(spec: JsonObject | None) -> None:
    config = [make("ApisixPluginConfig", "pc", spec=spec)] if spec else []
    found = settle(CLASS, gateway(), service(), route(rule(extension())), *config, options=NAMED)
    body = record(found)
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "!BackendNotFound"}]
    assert (body["plugins"]["fault-injection"]["abort"]["http_status"], "upstream_id" in body) == (500, False)


def test_an_extension_is_a_plugin_config() -> None:
    found = served(route(rule(extension())), make("ApisixPluginConfig", "pc", spec={"plugins": []}))
    assert "plugin_config_id" in record(found)
    assert of_parents(served(route(rule(extension("Other")))))[0]["ResolvedRefs"] == "!InvalidKind"


# Backends.


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"name": "absent", "port": 80}, "BackendNotFound"),
        ({"name": "web"}, "BackendNotFound"),
        ({"name": "web", "port": 81}, "BackendNotFound"),
        ({"kind": "Bucket", "name": "web", "port": 80}, "InvalidKind"),
        ({"name": "web", "namespace": "other", "port": 80}, "RefNotPermitted"),
    ],
)
def test_unusable_backends_result_in_500(reference: JsonObject, reason: str) -> None:
    found = served(route({"backendRefs": [reference]}))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": f"!{reason}"}]
    assert record(found)["plugins"] == {"fault-injection": {"abort": {"http_status": 500}}}


def test_backends_without_weight_get_no_requests() -> None:
    found = served(route({"backendRefs": [{"name": "web", "port": 80, "weight": 0}]}))
    assert record(found)["plugins"]["fault-injection"]["abort"]["http_status"] == 500
    many = [{"name": "web", "port": 80, "weight": weight} for weight in (0, 1, 2)]
    found = served(route({"backendRefs": [*many, {"name": "api", "port": 80, "weight": 4}]}), service("api"))
    split = record(found)["plugins"]["traffic-split"]["rules"][0]["weighted_upstreams"]
    assert [each["weight"] for each in split] == [3, 4], "the plugin has one weight for each upstream"
    assert "plugins" not in record(served(route({"backendRefs": many})))


@pytest.mark.parametrize(
    ("protocol", "scheme", "websocket"), [("kubernetes.io/h2c", "grpc", False), ("kubernetes.io/ws", "http", True)]
)
def test_protocols_of_backends(protocol: str, scheme: str, websocket: bool) -> None:
    backend = service(ports=[{"port": 80, "appProtocol": protocol}])
    found = settle(CLASS, gateway(), backend, route(rule()))
    (upstream,) = (body for path, body in bodies(found).items() if path.startswith("upstreams"))
    assert (upstream["scheme"], record(found).get("enable_websocket", False)) == (scheme, websocket)


# Streams.


def streams(found: World) -> list[JsonObject]:
    return [dict(body) for path, body in bodies(found).items() if path.startswith("stream_routes")]


def test_stream_routes_take_one_rule() -> None:
    entry = gateway(
        listener("tcp", 9000, "TCP"),
        listener("tls", 9001, "TLS", tls={"certificateRefs": [{"name": "cert"}]}),
    )
    found = served(
        route(rule(), kind="TLSRoute", hostnames=["a.test"]),
        route(rule(), rule(), kind="TCPRoute", name="rules"),
        route({"backendRefs": [{"name": "absent", "port": 80}]}, kind="TCPRoute", name="none"),
        entry=entry,
    )
    assert [(each["server_port"], each.get("sni"), "plugins" in each) for each in streams(found)] == [
        (9001, "a.test", False)
    ]
    assert of_parents(found, "TCPRoute", "rules")[0]["Accepted"] == "!UnsupportedValue"
    assert of_parents(found, "TCPRoute", "none")[0]["ResolvedRefs"] == "!BackendNotFound"


@pytest.mark.parametrize(("kind", "protocol"), [("TCPRoute", "TCP"), ("UDPRoute", "UDP")])
def test_weights_divide_connections(kind: str, protocol: str) -> None:
    """The share of a backend that cannot be used goes to an upstream without endpoints: it is rejected."""
    backends = [
        {"name": "web", "port": 80, "weight": 9},
        {"name": "api", "port": 80, "weight": 1},
        {"name": "absent", "port": 80, "weight": 5},
        {"name": "web", "port": 80, "weight": 0},
    ]
    entry = gateway(listener("l4", 9000, protocol))
    found = served(route({"backendRefs": backends}, kind=kind), service("api"), entry=entry)
    (body,) = streams(found)
    split = body["plugins"]["traffic-split"]["rules"][0]["weighted_upstreams"]
    assert [each["weight"] for each in split] == [9, 1, 5]
    assert split[0]["upstream_id"] == body["upstream_id"]
    assert split[2]["upstream"] == {"type": "roundrobin", "nodes": []}
    assert of_parents(found, kind) == [{"Accepted": "Accepted", "ResolvedRefs": "!BackendNotFound"}]


def test_grpc_calls_by_regular_expression() -> None:
    headers = [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}]
    match = {"method": {"type": "RegularExpression", "service": "a.*"}, "headers": headers}
    found = served(route(rule(matches=[match]), kind="GRPCRoute"))
    got = record(found, "GRPCRoute")
    assert got["vars"][1:] == [["uri", "~~", "^/(?:a.*)/(?:[^/]+)$"], ["http_x_a", "==", "1"]]
    regex = {"headers": [{"type": "RegularExpression", "name": "A", "value": "b+"}]}
    got = record(served(route(rule(matches=[regex]))))
    assert got["vars"][1:] == [["http_a", "~~", "^(?:b+)$"]]


def test_a_route_with_too_many_matches_is_in_no_index() -> None:
    spec = {
        "parentRefs": [{"name": "gw"}],
        "hostnames": [f"h{number}.test" for number in range(MOST_VALUES)],
        "rules": [{"matches": [{"path": {"value": "/a"}}, {"path": {"value": "/b"}}]}],
    }
    assert match_values(decode_custom(make("HTTPRoute", "app", spec=spec), "HTTPRoute")) == ()


def test_a_gateway_shares_its_hosts_with_routes_of_other_namespaces() -> None:
    entry = gateway(listener(hostname="*.example.org", allowedRoutes={"namespaces": {"from": "All"}}))
    app = route(
        rule(), namespace="team", hostnames=["a.example.org"], parentRefs=[{"name": "gw", "namespace": "default"}]
    )
    found, loop = prepare(CLASS, entry, service(namespace="team"), app)
    loop.settle()
    loop.enqueue(ObjectKey("Gateway", "default", "gw"))
    loop.settle()
    assert (problems(found)["Gateway default/gw"], problems(found)["HTTPRoute team/app"]) == ([], [])
