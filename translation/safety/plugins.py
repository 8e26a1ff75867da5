"""Faults of plugins: what a client could choose, and what occupies a worker.

The table has every plugin of APISIX in which a client's text can become a part of an address, and the plugins that have
further plugins inside. `tests/unit/translation/safety` compares it with the fields of all plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf, prod
from typing import Any, NamedTuple

from translation.core.options import Options
from translation.nginx.functions.attached import FIELD
from translation.plugins.code import NESTING, nested_plugins
from translation.safety.code import code_faults
from translation.safety.destinations import destination_faults
from translation.safety.faults import Fault, Steps
from translation.safety.framing import framing_faults
from translation.safety.nodes import MOST_NAMES
from translation.safety.paths import keeps_path
from translation.safety.references import is_reference
from translation.safety.urls import authority_of
from translation.safety.weights import most_shares, shares


class Setting(NamedTuple):
    """The context of a plugin.

    Attributes:
        options: The settings.
        judges: Whether the settings restrict what users may write in plugins: not in a global rule.
        limits_hosts: Whether its record limits the hosts of requests.
        sends_requests: Whether requests are sent on, with the path that plugins give them.
    """

    options: Options
    judges: bool = False
    limits_hosts: bool = False
    sends_requests: bool = True


Check = Callable[[Mapping[str, Any], Setting], Iterator[Fault]]

MOST_NESTED = 6
"""Maximum depth of arrays in a schema from which a gateway generates a response: one to three items per level."""

MOST_LISTS = 12
"""Maximum number of brackets in a query of GraphQL: up to 4 ms of work. With 23, it is 8 s."""

MOST_SEARCHES = 4
"""Maximum number of JSONPaths with `..`: each takes 60 ms for a body of 5 kB, which a gateway cannot interrupt."""

MOST_GROWTH = 100
"""Maximum of how many times the filters of a route multiply a response."""

MOST_DELAY = 30
"""Maximum delay of a request by a limit, in seconds. APISIX keeps its connection, even if the client has left."""

_DELAYS = f"may delay requests by more than {MOST_DELAY} seconds, which occupies connections of a gateway;"
_OPTIONS = frozenset("ijmosu")
_SPECIAL = frozenset("\\^$.[]|()?*+{}")

_LEAVES = "so that a client could choose the host; begin it with /"
_ADDRESS = "must have a literal scheme, host and port, followed by / or ? before the first variable"
_TWICE = "in which a client's variables would be replaced, too; use a variable such as $uri"


def plugin_faults(plugins: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    """Yield the faults of the plugins of a record, including those inside others."""
    refuses_code = setting.options.code_plugins == "refuse"
    names = plugins if setting.judges or refuses_code else [name for name in plugins if name in CHECKS]  # mostly none
    stack: list[tuple[Steps, Any, Any]] = [(("plugins", name), name, plugins[name]) for name in names]
    while stack:
        steps, name, config = stack.pop()
        if not isinstance(config, dict):
            continue
        if check := CHECKS.get(name):
            yield from _below(steps, check(config, setting))
        if refuses_code:
            yield from _below(steps, code_faults(name, config))
        if setting.judges:
            yield from _below(steps, framing_faults(name, config))
        if setting.judges and setting.options.judges_addresses:
            yield from _below(steps, destination_faults(name, config, setting.options))
        if name in NESTING:
            stack.extend(((*steps, inner), inner, its) for inner, its in nested_plugins(name, config))


def _below(steps: Steps, faults: Iterator[Fault]) -> Iterator[Fault]:
    return (fault._replace(steps=(*steps, *fault.steps)) for fault in faults)


def redirects_all(plugins: Mapping[str, Any]) -> bool:
    """Return whether every request is redirected, so that no rewritten path is appended to the name of an upstream."""
    redirect = plugins.get("redirect")
    return isinstance(redirect, dict) and bool(redirect.get("uri")) and "_meta" not in redirect


def weight_faults(upstream: Any, steps: Steps = ()) -> Iterator[Fault]:
    """Yield the faults of the nodes of an upstream."""
    if isinstance(upstream, dict) and shares(upstream.get("nodes")) > (most := most_shares(upstream)):
        what = (
            "have weights that occupy a gateway: divided by their greatest common divisor, they add up to more than"
            f" {most}; use smaller weights"
        )
        yield Fault((*steps, "nodes"), what)


def _rewrite(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    if setting.judges and _has_captures(config.get("headers")):
        yield Fault(("headers",), f"has a group of regex_uri, such as $1, {_TWICE}")
    if not setting.sends_requests:
        return
    uri = config.get("uri")
    if uri is not None and not _is_path(str(uri)):
        yield Fault(("uri",), f"may become a path without a slash at its beginning, {_LEAVES}")
    pairs = config.get("regex_uri")
    texts = pairs if isinstance(pairs, list) else []
    for index in range(0, len(texts), 2):
        pattern, replacement = (*texts[index : index + 2], "")[:2]
        if not is_reference(str(replacement)) and not keeps_path(str(pattern), str(replacement)):
            yield Fault(("regex_uri", index + 1), f"may become a path without a slash at its beginning, {_LEAVES}")


def _has_captures(value: Any) -> bool:
    """Return whether a text below a value refers to a group of a regular expression, as in `$1` or `${1}`."""
    if isinstance(value, str):
        return any(part.removeprefix("{")[:1].isdecimal() for part in value.split("$")[1:])
    if isinstance(value, dict):
        return any(map(_has_captures, value.values()))
    return isinstance(value, list) and any(map(_has_captures, value))


def _is_path(text: str) -> bool:
    """Return whether a text is a path, or a reference whose value the operator of the gateway chose."""
    return text.startswith("/") or is_reference(text)


def _mirror(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    host, path = config.get("host"), config.get("path")
    if "$" in str(host) and not is_reference(str(host)):
        yield Fault(("host",), _ADDRESS)
    if path is not None and not _is_path(str(path)):
        yield Fault(("path",), f"may extend the host, {_LEAVES}")


def _functions(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    """Yield the destinations of functions that a client could choose."""
    values = config.get(FIELD)
    for name in _WITH_URLS:
        value = values.get(name) if isinstance(values, dict) else None
        if isinstance(value, dict) and not _is_fixed(value, setting):
            yield Fault((FIELD, name, "uri"), _ADDRESS)


_WITH_URLS = ("mirror", "external")
"""The values of functions that send requests to a URL: `uri`, which begins with `base` after variables are replaced."""

_HOST_VARIABLES = ("$host", "${host}")
_PATH_VARIABLES = ("$real_request_uri", "${real_request_uri}")
"""A path that always begins with a slash."""


def _is_fixed(value: Mapping[str, Any], setting: Setting) -> bool:
    """Return whether the destination of a function is the same for every client, or a host that the route matches."""
    uri, base = str(value.get("uri")), str(value.get("base"))
    literal = base
    for variable in _HOST_VARIABLES if setting.limits_hosts else ():
        literal = literal.replace(variable, "host")
    rest = uri.removeprefix(base)
    follows = rest == "" or rest.startswith(("/", "?", *_PATH_VARIABLES))
    return uri.startswith(base) and follows and "$" not in literal and authority_of(literal) is not None


def _split(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    for index, rule in enumerate(_dicts(config.get("rules"))):
        for place, target in enumerate(_dicts(rule.get("weighted_upstreams"))):
            steps = ("rules", index, "weighted_upstreams", place, "upstream")
            upstream = target.get("upstream")
            yield from weight_faults(upstream, steps)
            if setting.judges and isinstance(upstream, dict) and _size(upstream.get("nodes")) > MOST_NAMES:
                what = f"has more than {MOST_NAMES} nodes, all of which a gateway resolves for one request; use fewer"
                yield Fault((*steps, "nodes"), what)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _query(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    if str(config.get("query")).count("[") > MOST_LISTS:
        what = (
            f"has more than {MOST_LISTS} opening brackets: the time to parse lists inside each other is exponential,"
            " and a gateway parses the query when it reads the record"
        )
        yield Fault(("query",), what)


def _masks(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    searches = sum(".." in str(each.get("name")) for each in _dicts(config.get("request")))
    if setting.judges and searches > MOST_SEARCHES:
        what = f"has more than {MOST_SEARCHES} JSONPaths with .., each of which searches the whole body; use fewer"
        yield Fault(("request",), what)


def _filters(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    rules = _dicts(config.get("filters")) if setting.judges else []
    for index, rule in enumerate(rules):
        if not _OPTIONS.issuperset(str(rule.get("options", ""))):
            what = "has other options than i, j, m, o, s and u, with which a gateway reads another pattern; remove them"
            yield Fault(("filters", index, "options"), what)
    if prod(map(_growth, rules)) > MOST_GROWTH:
        what = (
            f"may make a response more than {MOST_GROWTH} times as large; use regular expressions without special"
            " characters, or shorter replacements"
        )
        yield Fault(("filters",), what)


def _growth(rule: Mapping[str, Any]) -> int:
    """Return at most how many times a filter multiplies a response. A reference such as `$0` inserts what matches."""
    regex, text = str(rule.get("regex")), str(rule.get("replace"))
    references = text.count("$")
    if rule.get("scope", "once") == "once":
        return 1 + references
    shortest = len(regex) if _SPECIAL.isdisjoint(regex) else 1
    return 1 + len(text) // max(1, shortest) + references


def _rate(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    if setting.judges and not config.get("nodelay") and _ratio(config.get("burst"), config.get("rate")) > MOST_DELAY:
        yield Fault(("burst",), f"{_DELAYS} use a smaller one, a higher rate, or nodelay")


def _connections(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    """Yield the limits that delay a request for long: for each `conn` of the connections, by a learned time."""
    learns = not config.get("only_use_default_delay")
    rules = config.get("rules")
    every = [(("rules", index), each) for index, each in enumerate(_dicts(rules))] if rules else [((), config)]
    for steps, each in every if setting.judges else ():
        burst, conn = each.get("burst"), each.get("conn")
        if burst != 0 and (learns or _ratio(burst, conn if isinstance(conn, int) else 1) > MOST_DELAY):
            yield Fault((*steps, "burst"), f"{_DELAYS} use 0, or a small one with only_use_default_delay")


def _ratio(part: Any, whole: Any) -> float:
    """Return the quotient of two numbers; infinity for a text, which a client may choose, and without a divisor."""
    numbers = isinstance(part, int | float) and isinstance(whole, int | float)
    return part / whole if numbers and whole > 0 else inf


def _cache(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    if setting.judges and config.get("cache_strategy") != "memory":
        what = "must be memory: a gateway that may write a response to a disk waits for it after its client has left"
        yield Fault(("cache_strategy",), what)


def _schema(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    if _depth_of_arrays(config.get("response_schema")) > MOST_NESTED:
        what = (
            f"has more than {MOST_NESTED} arrays inside each other, from which a gateway generates responses that"
            " occupy it for minutes; use response_example"
        )
        yield Fault(("response_schema",), what)


def _depth_of_arrays(schema: Any) -> int:
    most, stack = 0, [(schema, 0)]
    while stack:
        here, depth = stack.pop()
        if not isinstance(here, dict):
            continue
        most = max(most, depth)
        stack.append((here.get("items"), depth + 1))
        properties = here.get("properties")
        stack.extend((each, depth) for each in (properties.values() if isinstance(properties, dict) else ()))
    return most


def _nothing(config: Mapping[str, Any], setting: Setting) -> Iterator[Fault]:
    return iter(())


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


CHECKS: Mapping[str, Check] = {
    "proxy-rewrite": _rewrite,
    "proxy-mirror": _mirror,
    "serverless-pre-function": _functions,
    "serverless-post-function": _functions,
    "traffic-split": _split,
    "mocking": _schema,
    "degraphql": _query,
    "data-mask": _masks,
    "response-rewrite": _filters,
    "limit-req": _rate,
    "limit-conn": _connections,
    "proxy-cache": _cache,
    "multi-auth": _nothing,
    "workflow": _nothing,
}
"""Plugin → what to check. Others, nearly all of them, need no check of their own."""
