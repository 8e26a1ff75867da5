"""Which route wins, compared with recorded responses of a real gateway and the development gateway, and the reasons."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.routing import choose
from e2e.devgateway import process
from e2e.devgateway.dataplane.http1 import Request
from e2e.devgateway.dataplane.request_context import Context
from e2e.devgateway.dataplane.router import Router
from e2e.devgateway.store import Record

RECORDED = Path(process.__file__).parent / "contract" / "match.jsonl"
UPSTREAMS = {f"127.0.0.1:1930{number}": f"u{number}" for number in range(1, 6)}


def recorded() -> list[Any]:
    """Return every recorded case whose responses identify the route: by its upstream, or by the gateway's 404."""
    found = []
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        routes = [put for put in case["config"] if str(put.get("put", "")).startswith("/routes/")]
        asked = [item for item in case["results"] if _told(item) is not None]
        single = all(len(_nodes(put["body"], case)) == 1 for put in routes)
        if asked and single and "plugins" not in json.dumps(routes):
            found.append(pytest.param(case["config"], asked, id=case["case"]))
    return found


def _told(result: dict[str, Any]) -> str | None:
    if "request" not in result:
        return None
    not_found = result.get("body") == {"error_msg": "404 Route Not Found"}
    return "none" if not_found else result.get("upstream")


def _nodes(route: dict[str, Any], case: dict[str, Any]) -> list[str]:
    services = {put["put"]: put["body"] for put in case["config"] if str(put.get("put", "")).startswith("/services/")}
    body = route.get("upstream") or services.get(f"/services/{route.get('service_id')}", {}).get("upstream") or {}
    nodes = body.get("nodes") or {}
    return list(nodes) if isinstance(nodes, dict) else [f"{node['host']}:{node['port']}" for node in nodes]


def request_of(recorded_request: dict[str, Any]) -> ProbeRequest:
    headers = {name.lower(): value for name, value in recorded_request.get("headers", {}).items()}
    return ProbeRequest(
        method=recorded_request["method"],
        scheme="http",
        authority=recorded_request.get("host", "127.0.0.1:19080"),
        target=recorded_request["path"],
        headers=headers,
        remote_addr=headers.get("x-real-ip") or recorded_request.get("src", "127.0.0.1"),
        server_port=19080,
    )


@pytest.mark.parametrize(("config", "results"), recorded())
def test_choice_is_the_recorded_one(config: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
    services = {put["put"].removeprefix("/services/"): put["body"] for put in config if "/services/" in put["put"]}
    routes: dict[str, RouteFacts] = {}
    for place, put in enumerate(config):
        if put["put"].startswith("/routes/"):
            name, body = put["put"].removeprefix("/routes/"), put["body"]
            order = routes[name].order if name in routes else place  # an update keeps its place
            hosts = services.get(str(body.get("service_id")), {}).get("hosts", ())
            routes[name] = RouteFacts(name, body, order, tuple(hosts))
    for result in results:
        choice = choose(request_of(result["request"]), routes.values())
        won = choice.winner.route.body if choice.winner else None
        got = (
            "none"
            if won is None
            else UPSTREAMS[_nodes(dict(won), {"config": config})[0].replace("localhost", "127.0.0.1")]
        )
        assert (got, choice.is_certain) == (_told(result), True), result["request"]


def test_enough_was_recorded() -> None:
    assert len(recorded()) >= 40


class _Followed:
    """The part of the store that the development gateway's router reads."""

    def kind(self, name: str) -> dict[str, Record]:
        return {}

    def subscribe(self, hook: Any) -> None:
        self.put = hook


HOSTS = ("", "a.org", "b.a.org", "c.b.a.org", "x.net", "A.org")
PATTERNS = ("", "a.org", "*.a.org", "*.b.a.org", "*", "b.a.org", "*.org", "X.net")
URIS = ("/", "/*", "/a", "/a*", "/a/*", "/a/b", "/a/b*", "/a/*/c", "*", "/a/b/c", "a")
PATHS = (
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/a/b/c",
    "/ab",
    "//a//b",
    "/a/../a/b",
    "/%61",
    "/z",
    "/a/x/c",
    "/a/b/c?x=1&y=2",
    "/a?x=2",
)
VARS: tuple[list[Any], ...] = (
    [],
    [["arg_x", "==", "1"]],
    [["arg_x", "~=", "1"]],
    [["arg_x", ">", 1], ["http_flag", "~~", "^y"]],
    [["arg_x", "in", ["1", "2"]]],
    ["OR", ["arg_y", "==", "2"], ["http_flag", "~*", "YES"]],
    ["!AND", ["arg_x", "==", "1"], ["request_method", "==", "GET"]],
    [["cookie_who", "!", "~~", "^b"]],
    [["remote_addr", "ipmatch", ["10.0.0.0/8"]]],
)
HEADERS: tuple[dict[str, str], ...] = ({}, {"flag": "yes"}, {"flag": "no", "cookie": "who=bob; x=1"})


def random_route(rng: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {"uris": rng.sample(URIS, rng.randint(1, 2)), "vars": rng.choice(VARS)}
    if hosts := [host for host in rng.sample(PATTERNS, rng.randint(0, 2)) if host]:
        body["hosts"] = hosts
    if rng.random() < 0.3:
        body["priority"] = rng.randint(-1, 2)
    if rng.random() < 0.2:
        body["methods"] = rng.sample(("GET", "POST", "PUT"), rng.randint(0, 2))
    if rng.random() < 0.15:
        body["remote_addrs"] = ["10.0.0.0/8", "127.0.0.1"][: rng.randint(1, 2)]
    if rng.random() < 0.05:
        body["status"] = 0
    return body


def random_request(rng: random.Random) -> ProbeRequest:
    host = rng.choice(HOSTS) + rng.choice(("", "", ":80", "."))
    return ProbeRequest(
        method=rng.choice(("GET", "GET", "POST", "HEAD")),
        scheme="http",
        authority=host,
        target=rng.choice(PATHS),
        headers=rng.choice(HEADERS),
        remote_addr=rng.choice(("127.0.0.1", "10.1.2.3", "192.0.2.1")),
        server_port=80,
    )


def answer_of(router: Router, request: ProbeRequest) -> str | None:
    headers = [("Host", request.authority), *request.headers.items()]
    wire = Request((request.method, request.target, "HTTP/1.1"), headers, peer=request.remote_addr, local_port=80)
    found = router.match(Context(wire))
    return found.name if found else None


def test_choice_equals_the_development_gateways_in_ten_thousand_random_route_sets() -> None:
    rng = random.Random(20261121)
    answered = 0
    for trial in range(10_000):
        store = _Followed()
        router = Router(store)  # type: ignore[arg-type]
        routes = []
        for place in range(rng.randint(1, 8)):
            name, body = str(rng.randint(1, 999)) + f"-{place}", random_route(rng)
            store.put("routes", name, Record(f"/apisix/routes/{name}", "routes", name, body, place, place))
            routes.append(RouteFacts(name, body, place))
        rng.shuffle(routes)
        request = random_request(rng)
        choice, want = choose(request, routes), answer_of(router, request)
        got = choice.winner.route.id if choice.winner else None
        assert (got, choice.is_certain) == (want, True), (trial, request, routes)
        answered += want is not None
    assert 3_000 < answered < 9_000  # both outcomes are well represented


def route(name: str, uri: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "uri": uri, **fields}


def reasons(request: ProbeRequest, *bodies: dict[str, Any]) -> dict[str, str]:
    # In the order of a gateway after a restart: the smallest id first.
    choice = choose(request, [RouteFacts(body["id"], body) for body in sorted(bodies, key=lambda body: body["id"])])
    reported = {found.route.id: f"{found.outcome}: {found.reason}" for found in choice.candidates}
    return reported | {found.route.id: found.reason for found in choice.missed}


GET = ProbeRequest("GET", "http", "shop.org", "/cart/items?x=1")


@pytest.mark.parametrize(
    ("loser", "want"),
    [
        (route("l", "/cart/*"), "loses: its host (any) is less specific than shop.org"),
        (route("l", "/cart/*", host="*.org"), "loses: its host (*.org) is less specific than shop.org"),
        (route("l", "/*", host="shop.org"), "loses: its uri /* is a shorter prefix than /cart/*"),
        (route("l", "/cart/*", host="shop.org", priority=-1), "loses: its priority -1 is lower than 0"),
        (
            route("x", "/cart/*", host="shop.org"),
            "loses: it has the same host, uri and priority as w, which comes first (after a restart: the smaller id)",
        ),
        (
            route("l", "/cart/*", host="shop.org", methods=["PUT"]),
            "loses: its methods are PUT, the request's is GET",
        ),
        (
            route("l", "/cart/items", host="shop.org", vars=[["arg_x", "==", "2"]]),
            "loses: vars: arg_x == '2', but it is '1'",
        ),
        (
            route("l", "/cart/items", host="shop.org", vars=[["http_beta", "~~", "on"]]),
            "loses: vars: http_beta ~~ 'on', but it is absent",
        ),
        (
            route("l", "/cart/items", host="shop.org", filter_func="function(vars) return true end"),
            "may win: its filter_func is Lua code, which only the gateway can run",
        ),
        (
            route("l", "/cart/items", host="shop.org", remote_addr="10.0.0.1"),
            "may win: its client must be in 10.0.0.1; remote_addr is unknown; use --remote-addr",
        ),
        (
            route("l", "/cart/items", host="shop.org", vars=[["arg_x", "~~", "("]]),
            "loses: vars: arg_x ~~ '(', but it is '1'",
        ),
        (
            route("l", "/cart/items", host="shop.org", vars=[["arg_x", "like", "1"]]),
            "loses: vars: vars cannot be compiled: invalid operator 'like'",
        ),
        (route("l", "/cart/*", host="other.org"), "its host is other.org, the request's is shop.org"),
        (route("l", "/basket", host="shop.org"), "its uri is /basket, the request's path is /cart/items"),
        (route("l", "/cart/*", host="shop.org", status=0), "it is disabled (status 0)"),
    ],
)
def test_the_loser_learns_the_reason(loser: dict[str, Any], want: str) -> None:
    reported = reasons(GET, route("w", "/cart/*", host="shop.org"), loser)
    assert reported["w"].startswith("wins: host shop.org, uri /cart/*")
    assert reported[loser["id"]] == want


def test_exact_uri_beats_a_prefix() -> None:
    reported = reasons(GET, route("w", "/cart/items"), route("l", "/cart/*", priority=9))
    assert reported["l"] == "loses: its uri /cart/* is a prefix, /cart/items is the exact path"


def test_a_credential_is_compared_and_not_shown() -> None:
    other = route("l", "/p", vars=[["http_x_api_key", "in", ["a-secret", "b-secret"]]])
    without = route("m", "/p", vars=[["arg_token", "==", "a-secret"]])
    reported = reasons(ProbeRequest("GET", "http", "", "/p", headers={"x-api-key": "c-secret"}), other, without)
    assert reported["l"] == "loses: vars: http_x_api_key in [hidden], but it is [hidden]"
    assert reported["m"] == "loses: vars: arg_token == [hidden], but it is absent"


def test_a_pattern_that_takes_too_long_is_ignored() -> None:
    slow = route("l", "/p", vars=[["arg_x", "~~", "(a|aa)+$"]])
    reported = reasons(ProbeRequest("GET", "http", "", "/p?x=" + "a" * 60 + "b"), slow)
    assert reported["l"].endswith("the regular expression takes too long")


def test_an_unknown_value_does_not_matter_if_other_conditions_decide() -> None:
    never = route("l", "/p", vars=[["remote_addr", "==", "10.0.0.1"], ["arg_x", "==", "1"]])
    reported = reasons(ProbeRequest("GET", "http", "", "/p?x=2"), never)
    assert reported["l"] == "loses: vars: arg_x == '1', but it is '2'"
