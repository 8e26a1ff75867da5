"""Rewritten paths begin with a slash, whatever the client sends; variables in its text are not evaluated.

A gateway appends the path to the name of an upstream: without the slash, a client would choose the host.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson, JsonObject
from tests.property.isolation.rewriting import Exchange
from tests.unit.translation.gateway.objects import CLASS, gateway, route, rule
from tests.unit.translation.nginx.host.bodies import early, functions
from tests.unit.translation.nginx.native.written import served, written
from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import service
from tests.unit.translation.settling import bodies, settle
from translation.core.options import Options
from translation.nginx.functions.headers import GROUPS
from translation.nginx.functions.proxying import SEND_REQUEST
from translation.plugins.rewrites import group_count, rewrite
from translation.safety.records import faults_of

SETS = 60
PATTERNS = (
    "/api(.*)",
    "/api(/.*)",
    "/api(/.*)?",
    "/(api)(.*)",
    "/(.*)",
    "/api/?([a-z.]*)(/x)?",
    "/[(]?(api)()(.*)",
    "/api",
)
PARTS = ("/", "$1", "$2", "x", ".evil.test", "$host", "-1", "/$3")
TEXTS = ("/", "api", ".evil.test:9090", "x", "//", "?", "$http_cookie", "%2F", "API/", "\n", "@", "$1", "${host}", "")
CLIENT = {"http_cookie": "SECRET", "host": "SECRET", "scheme": "http"}


def target_of(seed: random.Random) -> str:
    return "".join(seed.choices(PARTS, k=seed.randint(1, 4)))


def exchange_of(seed: random.Random) -> Exchange:
    target = "/api" + "".join(seed.choices(TEXTS, k=seed.randint(0, 5)))
    uri = re.sub("/+", "/", target.partition("?")[0].replace("%2F", "/"))
    return Exchange(uri, target, dict(CLIENT))


def rewriting(records: Iterator[FrozenJson]) -> list[FrozenJson]:
    """Return the plugins of routes that forward requests to a backend."""
    found = [body["plugins"] for body in records if body.get("upstream_id") and "plugins" in body]
    return [each for each in found if "proxy-rewrite" in each]


def of_nginx(path: str, uri: str, target: str) -> str:
    """Return the path that nginx sends to the backend, and a slash before it if it does not begin with one."""
    found = re.search(path, uri, re.IGNORECASE)
    assert found
    groups = (*found.groups(), None, None, None)
    text = re.sub(r"\$([1-3])", lambda each: groups[int(each[1]) - 1] or "", target)
    return text if text.startswith("/") else f"/{text}"


@pytest.mark.parametrize("number", range(SETS))
def test_paths_of_ingress_nginx_are_those_of_nginx_and_begin_with_a_slash(number: int) -> None:
    seed = random.Random(number)
    path, target = seed.choice(PATTERNS), target_of(seed)
    given = ingress(
        "web",
        (path, "ImplementationSpecific"),
        use_regex="true",
        rewrite_target=target,
        backend_protocol=seed.choice(("HTTP", "GRPC")),
    )
    records = rewriting(record.body for record in translated(given).records)
    native = rewriting(record.body for record in served(written("apisixroute", given)).records)
    assert records
    for body in (*records, *native):
        assert faults_of("routes", {"plugins": body, "upstream_id": "u"}, Options()) == []
        for _ in range(12):
            exchange = exchange_of(seed)
            if re.match(path, exchange.uri, re.IGNORECASE):
                exchange.rewrite(body["proxy-rewrite"])
                assert exchange.path.startswith("/"), (path, target, exchange)
                if "$host" not in target and not re.match(r"\$[12].", target):
                    assert exchange.path == of_nginx(path, exchange.uri, target), (path, target, exchange.uri)


@pytest.mark.parametrize(("target", "want"), [("new", 2), ("$1", 2), ("/new", None), ("/$1", None)])
def test_a_function_knows_where_nginx_sends_a_path_without_a_slash(target: str, want: int | None) -> None:
    given = ingress("web", ("/api(.*)", "ImplementationSpecific"), use_regex="true", rewrite_target=target)

    sent = [
        body["plugins"].get("serverless-post-function", {})
        for body in (record.body for record in translated(given).records)
        if body.get("upstream_id")
    ]

    assert [each.get("ingress_nginx", {}).get("bare") for each in sent] == [want] * 2
    assert all((SEND_REQUEST in each.get("functions", ())) == bool(want) for each in sent)


@pytest.mark.parametrize("number", range(SETS))
def test_variables_in_the_path_of_a_client_are_not_evaluated(number: int) -> None:
    seed = random.Random(number)
    given = ingress(
        "web",
        ("/api(.*)", "ImplementationSpecific"),
        use_regex="true",
        rewrite_target="/$1",
        x_forwarded_prefix=seed.choice(("/$1", "${1}", "/p$1/$1", "/p")),
        force_ssl_redirect=seed.choice(("true", "false")),
        from_to_www_redirect="true",
    )
    records = [record.body for record in translated(given).records if record.key.kind == "routes"]
    for found in (body["plugins"] for body in records):
        assert faults_of("routes", {"plugins": found}, Options()) == []
        exchange = exchange_of(seed)
        exchange.variables.pop("host")
        texts = []
        if "proxy-rewrite" in found:
            exchange.rewrite(found["proxy-rewrite"])
            texts += [*exchange.headers.values(), exchange.path]
        if "redirect" in found:
            texts.append(exchange.redirect(found["redirect"]))
        assert not any("SECRET" in text for text in texts), (found, exchange)


def test_a_redirect_to_https_drops_the_slash_at_the_end_and_nothing_else() -> None:
    given = ingress("web", ("/", "Prefix"), force_ssl_redirect="true")
    (found, *_) = (r.body["plugins"] for r in translated(given).records if "redirect" in r.body.get("plugins", {}))

    got = {}
    for target in ("/", "/a/", "/a", "/?x=/", "/$http_cookie", "//a//"):
        exchange = Exchange("/", target, dict(CLIENT) | {"host": "shop.test"})
        exchange.rewrite(found["proxy-rewrite"])
        got[target] = exchange.redirect(found["redirect"]).removeprefix("https://shop.test")

    assert got == {"/": "", "/a/": "/a", "/a": "/a", "/?x=/": "/?x=", "/$http_cookie": "/$http_cookie", "//a//": "//a/"}


@pytest.mark.parametrize(
    ("prefix", "data", "want"),
    [
        ("/$1", {}, {"X-Forwarded-Prefix": "/$1"}),
        ("/p", {"X-Part": "${1}", "X-Plain": "$host"}, {"X-Part": "${1}"}),
        ("/p", {}, None),
    ],
)
def test_a_function_sets_headers_with_groups_of_the_path(prefix: str, data: Any, want: JsonObject | None) -> None:
    given = ingress("web", ("/api(.*)", "Prefix"), use_regex="true", rewrite_target="/$1", x_forwarded_prefix=prefix)
    named = {"kind": "ConfigMap", "metadata": {"name": "config", "namespace": "ingress-nginx"}}
    headers = {"kind": "ConfigMap", "metadata": {"name": "headers", "namespace": "ingress-nginx"}, "data": data}

    got = translated(given, {**named, "data": {"proxy-set-headers": "ingress-nginx/headers"}}, headers)

    for body in (record.body for record in got.records if record.body.get("upstream_id")):
        assert early(body).get("groups") == want
        assert (GROUPS in functions(body)) == bool(want)
        assert not want or not set(want) & set(body["plugins"]["proxy-rewrite"]["headers"]["set"])


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        ("/api(.*)", "$1"),
        ("^/api(.*)", "${1}x"),
        ("/api(/.*)?", "$1"),
        ("v[0-9]", "v2"),
        ("/(.*)", ".evil.test/$1"),
        ("^(.)(.*)", "$2"),
        ("^", "x"),
        ("x", ""),
        ("(?i)^/api(.*)", "$1"),
        ("(?:^)/api(.*)", "$1"),
    ],
)
def test_a_rewrite_of_the_own_annotations_adds_only_a_missing_slash(pattern: str, replacement: str) -> None:
    for uri in ("/", "/api", "/api/users", "/apix", "/x/api/y", "/api.evil.test:80/", "/a/v1/b", "/api/api/x"):
        plain, safe = Exchange(uri, uri), Exchange(uri, uri)
        plain.rewrite({"regex_uri": [pattern, replacement]})
        safe.rewrite({"regex_uri": rewrite(pattern, replacement)})
        want = plain.path if plain.path.startswith("/") else f"/{plain.path}"
        assert safe.path == want, (uri, rewrite(pattern, replacement))
        config = {"proxy-rewrite": {"regex_uri": rewrite(pattern, replacement)}}
        assert faults_of("routes", {"plugins": config, "upstream_id": "u"}, Options()) == []


@pytest.mark.parametrize(("pattern", "replacement"), [("^/a(.*)", "/$1"), ("^/a(/.*)", "$1"), ("v1", "/v2")])
def test_a_rewrite_that_keeps_the_slash_stays_as_it_is(pattern: str, replacement: str) -> None:
    assert rewrite(pattern, replacement) == [pattern, replacement]


@pytest.mark.parametrize(
    ("pattern", "want"),
    [
        ("", 0),
        ("(a)(b(c))", 3),
        ("(?:a)(?i)(?=x)(?!y)(?<=z)(?<!z)(?>q)", 0),
        (r"\((a)\)", 1),
        ("[(](a)[^](](b)[]()](c)", 3),
        ("(?<name>a)(?P<other>b)(?'third'c)(?P=name)", 3),
        ("[a", 0),
        ("(a\\", 1),
    ],
)
def test_groups_are_counted_as_pcre_counts_them(pattern: str, want: int) -> None:
    assert group_count(pattern) == want


@pytest.mark.parametrize("number", range(20))
def test_paths_that_an_http_route_rewrites_begin_with_a_slash(number: int) -> None:
    seed = random.Random(number)
    value = "".join(seed.choices(("/", "$1", "$host", ".evil.test:22", "x", "$$", ""), k=3))
    change = seed.choice(({"type": "ReplaceFullPath"}, {"type": "ReplacePrefixMatch"}))
    change |= {f"replace{change['type'].removeprefix('Replace')}": value}
    kind = seed.choice(("URLRewrite", "RequestRedirect"))
    filters = [{"type": kind, {"URLRewrite": "urlRewrite"}.get(kind, "requestRedirect"): {"path": change}}]
    match = {"path": {"value": seed.choice(("/", "/api", "/a.b/"))}}
    found = settle(CLASS, gateway(), service(), route(rule(*filters, matches=[match])))

    for body in bodies(found).values():
        config = body.get("plugins", {}).get("proxy-rewrite")
        for _ in range(12 if config else 0):
            exchange = exchange_of(seed)
            exchange.rewrite(config)
            assert exchange.path.startswith("/"), (value, match, exchange)
            assert "SECRET" not in exchange.path
