"""No text of a client changes what a gateway connects to, whatever an object contains that is published."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.property.apisix_requests import (
    Connection,
    parse_uri,
    proxy_pass,
    resolve_var,
    rewritten,
    sent_by_function,
    upstream_of,
)
from translation.core.options import Options
from translation.nginx.functions.attached import FIELD
from translation.plugins.notation import ANY, ITEM, expanded, steps_of
from translation.safety.fields import FIELDS, Use
from translation.safety.paths import keeps_path
from translation.safety.records import safe_records
from translation.safety.urls import authority_of

EXAMPLES = int(os.environ.get("RECORD_EXAMPLES", "200"))

HOSTILE = (
    "",
    "x",
    "/",
    "//evil.test",
    ".evil.test:2379/x",
    ":2379/x",
    "@evil.test/",
    "\\@evil.test/",
    "#.evil.test",
    "?@evil.test",
    "]:6379/",
    "[::1]:6379/",
    "$http_x",
    "${uri}",
    "\r\nHost: evil.test",
    "%2f%2fevil.test",
    "evil.test",
    "9",
    "é\x00",
)
"""Texts that a client sends as header, argument or part of a path."""

PATHS = tuple(
    dict.fromkeys(
        f"{start}{end}"
        for start in ("/", "/api", "/api/", "//", "/(x", "/api/api")
        for end in ("", "/x", ".evil.test:2379/x", "\n.evil.test")
    )
)

NAMES = ("http_x", "arg_x", "uri", "request_uri", "host", "1")

NOTHING = ("", "\n", "%0A")
"""What remains of a path if its last part is optional: an error, or a name that nothing has."""

STARTS = ("^", "^", "", "(?i)^", "(?!^)")
LITERALS = (
    "",
    "/",
    "/api",
    "api",
    "x",
    ".",
    ".*",
    "[^/]",
    "[^/]*",
    "[]/(]",
    "[[:alpha:](/x)]*",
    "[(/]",
    "\\/",
    "\\.",
    "\\s",
)
ODD = ("\\Q(\\E", "\\c(", "\\K", "|", "(?=/api)", "(?<=/)", "(?<n>/)", "(*ACCEPT)", "\\x2f", "[", "(", ")", "$")
INSIDE = (
    "/",
    "/.*",
    "/[^/]*",
    "/?",
    ".",
    ".*",
    "[a-z.]*",
    "[^/]+",
    "",
    "/|[a-z.]*",
    "/x|.*",
    "(/.*)",
    "(.*)",
    "(/)?.*",
)
REPEATS = ("", "", "", "+", "?", "*", "{0}", "{1,2}", "+?", "?+")
groups = st.builds(
    lambda opening, inside, repeat: f"{opening}{inside})?$" if repeat == "$" else f"{opening}{inside}){repeat}",
    st.sampled_from(("(", "(", "(?:")),
    st.lists(st.sampled_from(INSIDE), min_size=1, max_size=2).map("".join),
    st.sampled_from((*REPEATS, "$")),
)
atoms = st.one_of(groups, groups, st.sampled_from(LITERALS), st.sampled_from((*LITERALS, *ODD)))
patterns = st.builds(
    lambda start, parts, end: start + "".join(parts) + end,
    st.sampled_from(STARTS),
    st.lists(atoms, min_size=1, max_size=4),
    st.sampled_from(("", "$")),
)
replacements = st.builds(
    str.__add__,
    st.sampled_from(("$1", "$1", "$1", "$2", "${1}", "${2}", "$3", "", "$0", "$$", "x", "$01", "$10", "${1", "$")),
    st.sampled_from(("", "", "/x", "x", ".evil.test", "?x", ":2379", "@", "$2", "/$2")),
)
texts = st.lists(
    st.sampled_from(
        (
            *(
                "http://",
                "https://",
                "HTTP://",
                "ftp://",
                "//",
                "a.test",
                "10.2",
                "[::1]",
                "[fd00::1",
                ":80",
                ":",
                "/",
                "?",
            ),
            *(
                "#",
                "@",
                "\\",
                "x",
                "]",
                "$http_x",
                "${arg_x}",
                "${none ?? y}",
                "$1",
                "\\$http_x",
                "$",
                " ",
                "\n",
                "%40",
            ),
        )
    ),
    max_size=6,
).map("".join)
Values = dict[str, str]
clients = st.dictionaries(st.sampled_from(NAMES), st.sampled_from((*HOSTILE, *PATHS)))


@given(pattern=patterns, replacement=replacements)
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_accepted_rewrite_always_gives_a_path(pattern: str, replacement: str) -> None:
    if not keeps_path(pattern, replacement):
        return
    config = {"regex_uri": [pattern, replacement]}
    for path in PATHS:
        for raw in (True, False):
            got = rewritten(config | {"use_real_request_uri_unsafe": raw}, path, {})
            assert got in (None, *NOTHING) or got.startswith("/"), (pattern, replacement, path, got)


@given(url=texts, client=clients)
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_accepted_url_always_leads_to_its_literal_address(url: str, client: Values) -> None:
    found = authority_of(url)
    if found is None:
        return
    host = f"[{found.host}]" if ":" in found.host else found.host
    got = parse_uri(resolve_var(url, client))
    assert got in (None, Connection(url.partition("://")[0], host, str(found.port)))


def connections(body: JsonObject, path: str, client: Values) -> list[object]:
    """Return what a gateway connects to for a request that a route matches."""
    plugins: JsonObject = body["plugins"]
    if "abort" in plugins.get("fault-injection", {}):
        return []
    found: list[object] = []
    rewrite = plugins.get("proxy-rewrite")
    uri = rewritten(rewrite, path, client | {"uri": path}) if rewrite else path
    if uri is None:
        return []  # an error
    mirror = plugins.get("proxy-mirror")
    if mirror:
        found.append(proxy_pass(mirror["host"] + (mirror.get("path", "") or uri)))
    values = plugins.get("serverless-pre-function", {}).get(FIELD, {}).values()
    found += [sent_by_function(value["uri"], value["base"], client | {"uri": path}) for value in values]
    return [*found, upstream_of(uri)]


def plugin(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=fields)


paths = st.one_of(texts, replacements, patterns)
pairs = st.lists(st.tuples(patterns, paths), max_size=2).map(lambda found: [text for pair in found for text in pair])
own = st.tuples(texts, texts).map(lambda found: {"uri": found[0] + found[1], "base": found[0]})
PLUGINS = st.fixed_dictionaries(
    {},
    optional={
        "proxy-rewrite": plugin(uri=paths, regex_uri=pairs, use_real_request_uri_unsafe=st.booleans()),
        "proxy-mirror": st.fixed_dictionaries(
            # The schema of the plugin permits no other characters.
            {"host": st.sampled_from(("http://a.test", "https://10.2:80", "http://[::1]"))},
            optional={"path": st.sampled_from(("/x", "/x/@", "/x:80"))},
        ),
        "serverless-pre-function": st.fixed_dictionaries(
            {FIELD: st.dictionaries(st.sampled_from(("mirror", "external")), own)}
        ),
    },
)


@given(plugins=PLUGINS, one=clients, other=clients, path=st.sampled_from(PATHS), another=st.sampled_from(PATHS))
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_client_of_a_published_route_leads_to_the_same_connections(
    plugins: JsonObject, one: Values, other: Values, path: str, another: str
) -> None:
    record = Record(RecordKey("routes", "r"), "r", {"id": "r", "uris": ["/*"], "plugins": plugins, "upstream_id": "u"})
    (got,), _ = safe_records([record], Options())
    first, second = connections(dict(got.body), path, one), connections(dict(got.body), another, other)
    assert all(a == b or None in (a, b) for a, b in zip(first, second, strict=False)), (got.body, first, second)


PRESET = Options(plugins="reviewed", external_addresses="refuse-internal")
DESTINATIONS = [
    (name, steps_of(path), use)
    for name, uses in FIELDS.items()
    for use in (Use.URL, Use.HOST)
    for path in expanded(uses.get(use, ""))
]
INTERNAL = frozenset(("127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0x7f.1", "0127.0.0.1"))
urls = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(("http://", "https://", "//", "")),
        st.sampled_from(("", "", "good.test@", "good.test:80@", "good.test#@", "good.test\\@", "$env://", "${http_x}")),
        st.sampled_from((*INTERNAL, "good.test", "127.0.0.1$http_x")),
        st.sampled_from(("", ":80", "/", "/x", "?@good.test", "#good.test", "\\good.test", "@good.test/", "$http_x")),
    ),
)


def placed(steps: tuple[str, ...], value: str) -> Any:
    """Return a configuration with a value in one field."""
    if not steps:
        return value
    below = placed(steps[1:], value)
    return [below] if steps[0] == ITEM else {"any" if steps[0] == ANY else steps[0]: below}


@given(place=st.sampled_from(DESTINATIONS), text=st.one_of(urls, texts), listed=st.booleans(), client=clients)
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_destination_that_the_preset_publishes_is_literal_and_not_internal(
    place: tuple[str, tuple[str, ...], Use], text: str, listed: bool, client: Values
) -> None:
    name, steps, use = place
    config = placed((*steps, ITEM) if listed else steps, text)
    record = Record(RecordKey("routes", "r"), "r", {"id": "r", "uris": ["/*"], "plugins": {name: config}})
    (got,), _ = safe_records([record], PRESET)
    if got is not record:
        return
    if use is Use.URL:
        found = parse_uri(text)
        assert found == parse_uri(resolve_var(text, client))
        assert found is None or found.host.lower() not in INTERNAL
    else:
        assert "$" not in text
        assert text.rsplit(":", 1)[0].lower() not in INTERNAL


@pytest.mark.parametrize(
    ("url", "client"),
    [
        ("http://169.254$http_x", {"http_x": ".169.254/latest"}),
        ("http://[fd00::1]/check?for=$arg_x", {"arg_x": "]:6379/"}),
        ("http://a.test#$arg_x", {"arg_x": ".evil.test"}),
        ("http://a.test:8$arg_x", {"arg_x": "0"}),
    ],
)
def test_the_simulation_knows_how_clients_choose_an_address(url: str, client: Values) -> None:
    assert parse_uri(resolve_var(url, client)) != parse_uri(resolve_var(url, {}))
    assert authority_of(url) is None


def test_the_simulation_knows_how_a_path_becomes_a_part_of_a_host() -> None:
    config = {"regex_uri": ["^/api(.*)", "$1"]}
    uri = rewritten(config, "/api.evil.test:2379/v3/kv/put", {})
    assert uri is not None
    assert upstream_of(uri) == Connection("http", "apisix_backend.evil.test", "2379")
