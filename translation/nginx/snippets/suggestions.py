"""Replacements of the statements of a snippet, none of which changes more than its statement did.

A block becomes one rule of an ApisixRoute with its path or condition. The directives in it have no replacement of
their own: without the block, they would apply to every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from translation.nginx.snippets.directives import Replacement, Values, access, described, replacement_of
from translation.nginx.snippets.statements import Statement, statements_of

_LONGEST_QUOTE = 240
_AUTHENTICATION, _SERVER = "auth-snippet", "server-snippet"
_NEVER = {
    "modsecurity-snippet": "no equivalent for rules of ModSecurity; use a web application firewall",
    "stream-snippet": "no equivalent; it changes the whole gateway",
}
_PATH_OPERATORS = {"~": "RegexMatch", "~*": "RegexMatchCaseInsensitive"}
_OPERATORS = {"=": "Equal", "!=": "NotEqual", **_PATH_OPERATORS}
_NEGATED = {"!~": "RegexNotMatch", "!~*": "RegexNotMatchCaseInsensitive"}
_CONDITION = TextPattern(r"^\(\s*\$([A-Za-z0-9_]+)\s*(?:(=|!=|!?~\*?)\s*(.*?))?\s*\)$")


@dataclass(frozen=True, slots=True)
class Scope:
    """The requests that a snippet applies to.

    Attributes:
        known: Variables of ingress-nginx whose values are known for the Ingress.
        hosts: The hosts of the Ingress.
        paths: Its paths, as an ApisixRoute has them; empty if some are regular expressions.
    """

    known: Values = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def suggestions(annotation: str, snippet: str, scope: Scope) -> Iterator[str]:
    """Yield a line for each statement of a snippet: the nginx lines, and their replacement.

    Args:
        annotation: Its name without the prefix.
        snippet: Its value.
        scope: The requests that it applies to; a server-snippet applies to all paths.
    """
    if annotation == _SERVER:
        scope = replace(scope, paths=("/*",))
    if annotation in _NEVER:
        yield f"`{_cut(' '.join(snippet.split()))}`: {_NEVER[annotation]}"
        return
    statements = statements_of(snippet)
    if annotation == _AUTHENTICATION:
        yield from _of_authentication(statements)
        return
    assigned = {each.words[1].lstrip("$") for each in statements if each.name in _ASSIGNING and len(each.words) > 1}
    for group in _grouped(statements):
        each = group[0]
        text = _text(annotation, group, scope)
        if each.name not in _ASSIGNING and (name := _assigned(each, assigned)):
            text = f"no equivalent: ${name} is set by another line of the snippet"
        yield f"`{_cut(' '.join(line.quoted for line in group))}`: {text}"


_ASSIGNING = ("set", "auth_request_set")
_ACCESS = ("allow", "deny")


def _grouped(statements: list[Statement]) -> list[list[Statement]]:
    """Return the statements, with all lines `allow` and `deny` as one group: their order matters."""
    lines = [each for each in statements if each.name in _ACCESS and len(each.words) > 1]
    others = [[each] for each in statements if each not in lines]
    return [lines, *others] if lines else others


def _text(annotation: str, group: list[Statement], scope: Scope) -> str:
    if group[0].body is not None:
        return _block(group[0], scope)
    return _directive(annotation, _replacement(group, scope.known))


def _replacement(group: list[Statement], known: Values) -> Replacement:
    first = group[0]
    if first.name not in _ACCESS or len(first.words) < 2:
        return replacement_of(first.words, known)
    found = access([(each.name, each.words[1]) for each in group])
    return found or Replacement("no equivalent: nginx uses the first line that matches; write a list yourself")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _assigned(statement: Statement, names: set[str]) -> str:
    """Return a variable in a statement that the snippet itself sets; empty if there is none."""
    used = statement.quoted
    return next((name for name in sorted(names) if f"${name}" in used or f"${{{name}}}" in used), "")


def _directive(annotation: str, found: Replacement) -> str:
    if annotation == _SERVER and found.is_needed:
        return f"{found.text}, in every Ingress of the host"
    return found.text


def _of_authentication(statements: list[Statement]) -> Iterator[str]:
    """Yield the headers of requests to the authentication service; an auth-snippet changes no other requests."""
    for each in statements:
        if each.name == "proxy_set_header" and len(each.words) > 2:
            data = json.dumps({each.words[1]: each.words[2]}, ensure_ascii=False)
            text = f"the annotation auth-proxy-set-headers with the name of a ConfigMap that contains {data}"
        else:
            text = "no equivalent for requests to the authentication service"
        yield f"`{_cut(each.quoted)}`: {text}"


def _block(statement: Statement, scope: Scope) -> str:
    """Return the rule that replaces a block; a block is replaced completely or not at all."""
    match = _match(statement, scope)
    plugins = _plugins(statement, scope.known)
    if match is None or plugins is None or "ip-restriction" in plugins:
        return f"no equivalent for the block; write a rule of an ApisixRoute{_with(match)} yourself"
    answers = bool(plugins.keys() & {"fault-injection", "redirect"})
    if statement.name == "location" and not answers:
        if plugins:
            return f"no equivalent for the block; write a rule of an ApisixRoute{_with(match)} yourself"
        return "not needed: without the block, the backend of the Ingress answers"
    if not plugins:
        return "not needed: the block changes nothing for requests"
    backends = "" if answers else ", with the backends of the path"
    return f"a rule of an ApisixRoute with a high priority{_with(match)} and {described(plugins)}{backends}"


def _plugins(statement: Statement, known: Values) -> dict[str, JsonObject] | None:
    """Return the plugins that do what the directives in a block do; None if there are none for one of them."""
    plugins: dict[str, JsonObject] = {}
    for group in _grouped(statement.body or []):
        found = _replacement(group, known) if group[0].body is None else None
        if found is None or (found.is_needed and not found.plugins):
            return None
        for name, config in found.plugins.items() if found.is_needed else ():
            plugins[name] = _combined(plugins.get(name, {}), config)
    return plugins


def _with(match: Mapping[str, object] | None) -> str:
    return f", match {json.dumps(match, ensure_ascii=False)}" if match else ""


def _combined(before: JsonObject, config: JsonObject) -> JsonObject:
    """Return two configurations of a plugin as one; lists are joined."""
    result = dict(before)
    for name, value in config.items():
        known = result.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            result[name] = _combined(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            result[name] = [*known, *value]
        else:
            result[name] = value
    return result


def _match(statement: Statement, scope: Scope) -> JsonObject | None:
    """Return the match of a rule for the requests of a block; None if that is impossible."""
    found = None
    if statement.name == "location":
        found = _location(statement.words[1:])
    elif statement.name == "if" and scope.paths and (expressions := _condition(statement.text)):
        found = {"paths": list(scope.paths), **expressions}
    if found is None:
        return None
    return {"hosts": list(scope.hosts), **found} if scope.hosts else found


def _location(words: list[str]) -> JsonObject | None:
    modifier, path = (words[0], words[1]) if len(words) == 2 else ("", words[0] if len(words) == 1 else "")
    if modifier in _PATH_OPERATORS:
        expression = {"subject": {"scope": "Path"}, "op": _PATH_OPERATORS[modifier], "value": path}
        return {"paths": ["/*"], "exprs": [expression]}
    if modifier not in ("", "=", "^~") or not path.startswith("/"):
        return None
    return {"paths": [path if modifier == "=" else f"{path}*"]}


def _condition(text: str) -> JsonObject | None:
    found = _CONDITION.search(text.removeprefix("if").strip())
    if found is None:
        return None
    name, operator, value = found[1], found[2], (found[3] or "").strip("\"'")
    if operator and "$" in value and operator in ("=", "!="):
        return None
    subject = {"scope": "Variable", "name": name}
    if not operator:
        return {"exprs": [{"subject": subject, "op": "RegexMatch", "value": "^(?!0$)."}]}
    return {"exprs": [{"subject": subject, "op": {**_OPERATORS, **_NEGATED}[operator], "value": value}]}
