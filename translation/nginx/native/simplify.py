"""Makes the rules of a host maintainable without changing which rule answers a request, and how.

The provider has a route for each location, scheme and response. Here, rules that can never match are removed, rules of
http and https that do the same are merged, and paths with the same action share a rule. A gateway compares priorities
only between rules with the same path (APISIX 3.18, radixtree), so their order, not their value, is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject

_SCHEME = "scheme"
_HEADERS = "response-rewrite"
_PLAIN_PATH = ValuePattern(r"/[A-Za-z0-9_./-]*")
_PRIORITY_STEP = 10
_SHAREABLE = frozenset({"proxy-rewrite", "response-rewrite", "request-id", "client-control", "cors", "proxy-buffering"})
"""Plugins without a state, which may be the same for several rules."""


def simplified(rules: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the rules of one host, highest priority first; `priority` is their order in the gateway."""
    found = [_with_variable(rule) for rule in rules if not _never_matches(rule)]
    found = _without_schemes(found)
    return _with_joined_paths(sorted(found, key=lambda rule: -int(rule["priority"])))


def renumbered(rules: Sequence[JsonObject]) -> list[JsonObject]:
    """Return rules with small priorities, between which there is room for rules of users."""
    ranks = {priority: rank for rank, priority in enumerate(sorted({rule["priority"] for rule in rules}), 1)}
    return [{**rule, "priority": ranks[rule["priority"]] * _PRIORITY_STEP} for rule in rules]


_Configs: TypeAlias = list[tuple[str, list[JsonObject]]]
"""Plugin configs: name and plugins."""


def shared_plugins(rules: Sequence[JsonObject], name: str) -> tuple[list[JsonObject], _Configs]:
    """Return rules whose common plugins are in plugin configs, and these: name and plugins.

    Args:
        rules: The rules of one ApisixRoute.
        name: The beginning of the names of plugin configs.
    """
    groups: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        common = _shareable(rule)
        if common and "plugin_config_name" not in rule:
            groups.setdefault(_text(common), []).append(index)
    result, configs = list(rules), _Configs()
    for indexes in groups.values():
        if len(indexes) < 2:
            continue
        title = f"{name}-{len(configs) + 1}" if configs else name
        configs.append((title, _shareable(rules[indexes[0]])))
        for index in indexes:
            own = [plugin for plugin in rules[index]["plugins"] if not _is_shareable(plugin)]
            rest = {key: value for key, value in rules[index].items() if key != "plugins"}
            result[index] = {**rest, **({"plugins": own} if own else {}), "plugin_config_name": title}
    return result, configs


def _shareable(rule: JsonObject) -> list[JsonObject]:
    return [plugin for plugin in rule.get("plugins", ()) if _is_shareable(plugin)]


def _is_shareable(plugin: JsonObject) -> bool:
    """Return whether a plugin has no state; new paths are judged together with the rule that they belong to."""
    return plugin["name"] in _SHAREABLE and not plugin["config"].keys() & {"uri", "regex_uri"}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _never_matches(rule: JsonObject) -> bool:
    """Return whether a rule requires one variable to have two values, such as both schemes."""
    wanted: dict[str, str] = {}
    for each in rule["match"].get("exprs", ()):
        name = _text(each["subject"])
        if each["op"] == "Equal" and wanted.setdefault(name, each["value"]) != each["value"]:
            return True
    return False


def _with_variable(rule: JsonObject) -> JsonObject:
    """Return the redirect of a path to itself with a slash, without the path, so that several paths can share it."""
    paths = rule["match"]["paths"]
    if len(paths) != 1 or paths[0].endswith("*") or not _PLAIN_PATH.fits(paths[0]):
        return rule

    def changed(plugin: JsonObject) -> JsonObject:
        uri = plugin["config"].get("uri", "")
        if plugin["name"] != "redirect" or f"$host{paths[0]}/$is_args" not in uri:
            return plugin
        config = {**plugin["config"], "uri": uri.replace(f"$host{paths[0]}/", "$host$uri/")}
        return {**plugin, "config": config}

    return {**rule, "plugins": [changed(plugin) for plugin in rule["plugins"]]} if "plugins" in rule else rule


def _scheme_of(rule: JsonObject) -> str:
    """Return the scheme that a rule requires; empty if it serves both."""
    conditions = (each for each in rule["match"].get("exprs", ()) if each["subject"].get("name") == _SCHEME)
    return next((each["value"] for each in conditions if each["op"] == "Equal"), "")


def _without_schemes(rules: list[JsonObject]) -> list[JsonObject]:
    """Merge a rule of http with the one of https that does the same, if no rule between them has their path."""
    result = list(rules)
    for http in rules:
        if _scheme_of(http) != "http" or http not in result:
            continue
        for https in result:
            if _scheme_of(https) == "https" and (merged := _merged(http, https, result)):
                result[result.index(https)] = merged
                result.remove(http)
                break
    return result


def _merged(http: JsonObject, https: JsonObject, rules: Sequence[JsonObject]) -> JsonObject | None:
    """Return one rule for both schemes, or None if they do different things."""
    plain = _without_scheme(http)
    if _rest(plain) != _rest(_without_scheme(https)) or http["match"]["paths"] != https["match"]["paths"]:
        return None
    low, high = sorted((http["priority"], https["priority"]))
    between = (each for each in rules if low <= each["priority"] <= high and each not in (http, https))
    if any(set(each["match"]["paths"]) & set(http["match"]["paths"]) for each in between):
        return None
    plugins = _plugins_of_both(http.get("plugins", []), https.get("plugins", []))
    if plugins is None:
        return None
    return {**plain, "priority": high, **({"plugins": plugins} if plugins else {})}


def _without_scheme(rule: JsonObject) -> JsonObject:
    exprs = [each for each in rule["match"].get("exprs", ()) if each["subject"].get("name") != _SCHEME]
    match = {key: value for key, value in rule["match"].items() if key != "exprs"}
    return {**rule, "match": match | ({"exprs": exprs} if exprs else {})}


def _rest(rule: JsonObject) -> str:
    return _text({key: value for key, value in rule.items() if key not in ("name", "priority", "plugins")})


def _plugins_of_both(http: list[JsonObject], https: list[JsonObject]) -> list[JsonObject] | None:
    """Return the plugins for both schemes; headers that only https has get a condition."""
    if _text(http) == _text(https):
        return http
    others = [plugin for plugin in https if plugin["name"] != _HEADERS]
    if _text(http) != _text(others) or "vars" in https[-1]["config"] or https[-1]["name"] != _HEADERS:
        return None
    condition = {"vars": [[_SCHEME, "==", "https"]]}
    return [*others, {**https[-1], "config": {**https[-1]["config"], **condition}}]


def _with_joined_paths(rules: Iterable[JsonObject]) -> list[JsonObject]:
    """Join rules that differ only in their paths; their priority is the same, so no other rule is between them."""
    found: dict[str, JsonObject] = {}
    for rule in rules:
        key = _joining_key(rule)
        if (known := found.get(key)) is None:
            found[key] = rule
        else:
            paths = dict.fromkeys([*known["match"]["paths"], *rule["match"]["paths"]])
            found[key] = {**known, "match": {**known["match"], "paths": list(paths)}}
    return list(found.values())


def _joining_key(rule: JsonObject) -> str:
    match = {key: value for key, value in rule["match"].items() if key != "paths"}
    return _text({**{key: value for key, value in rule.items() if key != "name"}, "match": match})


def numbered(rules: Iterable[JsonObject], kind: Callable[[JsonObject], str]) -> Iterator[JsonObject]:
    """Yield rules with unique names: their place, and a word for what they do."""
    for number, rule in enumerate(rules, 1):
        yield {"name": f"{number:02}-{kind(rule)}", **{key: value for key, value in rule.items() if key != "name"}}
