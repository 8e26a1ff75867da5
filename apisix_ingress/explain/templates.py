"""Variables, patterns and conditions in the values of plugins, evaluated as the gateway does for one request.

`Unknown` means that the request does not contain a value, or that a pattern cannot be evaluated in bounded time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apisix_ingress.explain.expressions import REGEX_TIMEOUT, evaluate
from apisix_ingress.explain.request import ProbeRequest, Unknown
from apisix_ingress.model.formats.patterns import ForeignMatch, ForeignPattern, TextPattern
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in

_VARIABLE = TextPattern(r"\\?\$(?:\{([0-9A-Za-z_.]+)\}|([0-9A-Za-z_]+))")
_GROUP = TextPattern(r"\$(?:\{([0-9]{1,3})\}|([0-9]{1,3}))")


@dataclass(frozen=True, slots=True)
class PluginScope:
    """What the plugins of a route see of a request.

    Attributes:
        request: The request.
        rewrite: The configuration of `proxy-rewrite`, which sets the variable `upstream_uri`; empty without it.
        status: The status of the response, for conditions of the response phase; None before it.
        changed: Variables that plugins set to values of the request that they do not show, such as `remote_addr`.
        patterns: Whether conditions and patterns of users are evaluated; otherwise their results are unknown.
    """

    request: ProbeRequest
    rewrite: FrozenJson
    status: int | None = None
    changed: frozenset[str] = frozenset()
    patterns: bool = True

    def variable(self, name: str) -> str | None:
        """Return a variable, or None if the request does not have it.

        Raises:
            Unknown: Its value is unknown.
        """
        if name in self.changed:
            raise Unknown(f"a plugin changes {name}")
        if name == "upstream_uri":
            return self._upstream_uri()
        if name == "status" and self.status is not None:
            return str(self.status)
        return self.request.variable(name)

    def expanded(self, template: str) -> str:
        """Return a text with its variables filled in; a variable without a value is empty.

        Raises:
            Unknown: The value of a variable is unknown.
        """
        return _VARIABLE.sub(
            lambda match: match[0][1:] if match[0][0] == "\\" else self.variable(match[1] or match[2]) or "", template
        )

    def shown(self, template: str) -> str:
        """Return a text with its variables filled in; those whose values are unknown stay in it."""

        def fill(name: str, text: str) -> str:
            try:
                return self.variable(name) or ""
            except Unknown:
                return text

        return _VARIABLE.sub(
            lambda match: match[0][1:] if match[0][0] == "\\" else fill(match[1] or match[2], match[0]), template
        )

    def holds(self, rules: object) -> bool | None:
        """Return whether an expression holds; None if unknown."""
        given = list_in(rules)
        if not given:
            return True
        return evaluate(given, self.variable).holds if self.patterns else None

    def any_holds(self, groups: object) -> bool | None:
        """Return whether one of several expressions holds, or there is none; None if unknown."""
        results = [self.holds(rules) for rules in list_in(groups)]
        return True if not results or True in results else None if None in results else False

    def applies(self, conf: FrozenJson) -> bool | None:
        """Return whether a plugin runs, by its `_meta`; None if unknown."""
        meta = mapping_in(conf.get("_meta"))
        return False if meta.get("disable") else self.holds(meta.get("filter"))

    def replaced(self, pattern: str, template: str, text: str) -> str | None:
        """Return a text whose first match of a pattern is replaced; None without a match.

        Raises:
            Unknown: The pattern is invalid, takes too long, or is not evaluated.
        """
        match = self._match(pattern, text)
        if match is None:
            return None
        filled = _GROUP.sub(lambda group: _group(match, text, int(group[1] or group[2])), template)
        return text[: match.start] + filled + text[match.end :]

    def contains(self, patterns: Sequence[str], text: str, *, ignore_case: bool = False) -> bool:
        """Return whether a text contains a match of one of the patterns.

        Raises:
            Unknown: A pattern is invalid, takes too long, or is not evaluated.
        """
        return any(self._match(each, text, ignore_case=ignore_case) is not None for each in patterns)

    def _match(self, pattern: str, text: str, *, ignore_case: bool = False) -> ForeignMatch | None:
        if not self.patterns:
            raise Unknown("patterns are not evaluated")
        try:
            return ForeignPattern(pattern, ignore_case=ignore_case).groups(text, seconds=REGEX_TIMEOUT)
        except (ValueError, TimeoutError) as error:
            raise Unknown(str(error) or "the regular expression takes too long") from None

    def _upstream_uri(self) -> str:
        """Return the path and query that `proxy-rewrite` sends to the upstream."""
        raw = bool(self.rewrite.get("use_real_request_uri_unsafe"))
        text = self.request.target if raw else self.request.path
        if "uri" in self.rewrite:
            path = self.expanded(str(self.rewrite["uri"]))
        else:
            path = self._rewritten([str(each) for each in list_in(self.rewrite.get("regex_uri"))], text)
        query = self.request.target.partition("?")[2]
        return path if raw or not query else f"{path}{'&' if '?' in path else '?'}{query}"

    def _rewritten(self, rules: list[str], text: str) -> str:
        for pattern, template in zip(rules[::2], rules[1::2], strict=False):
            if (path := self.replaced(pattern, template, text)) is not None:
                return path
        return text


def _group(match: ForeignMatch, text: str, number: int) -> str:
    if number == 0:
        return text[match.start : match.end]
    return match.groups[number - 1] if number <= len(match.groups) else ""
