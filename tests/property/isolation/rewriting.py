"""The path, the headers and the redirect that APISIX 3.18 derives from a request, by its source."""

from __future__ import annotations

from dataclasses import dataclass, field

import regex

from apisix_ingress.model.json import FrozenJson
from tests.property.apisix_requests import expanded, resolve_var

_CAPTURE = regex.compile(r"(?<!\\)\$\{?(\d+)\}?", regex.ASCII)
"""core/utils.lua `resolve_var_with_captures`."""

_OF_REDIRECT = regex.compile(r"(\\\$[0-9a-zA-Z_]+)|\$\{([0-9a-zA-Z_]+)\}|\$([0-9a-zA-Z_]+)|(\$|[^$\\]+)")
"""plugins/redirect.lua `parse_uri`."""


@dataclass(slots=True)
class Exchange:
    """One request in the gateway.

    Attributes:
        uri: The path, decoded.
        target: The path and the query as the client sent them.
        variables: Further variables by name.
        captures: The groups of the last pattern of `regex_uri`.
        headers: The headers that were set.
    """

    uri: str
    target: str
    variables: dict[str, str] = field(default_factory=dict)
    captures: regex.Match[str] | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path that is appended to the name of the upstream; before it is escaped."""
        return self.variables["upstream_uri"]

    def rewrite(self, config: FrozenJson) -> None:
        """plugins/proxy-rewrite.lua `_M.rewrite`."""
        path = self.target if config.get("use_real_request_uri_unsafe") else self.uri
        if "uri" in config:
            path = resolve_var(config["uri"], self._known)
        elif "regex_uri" in config:
            path = self._replaced(path, config["regex_uri"])
        self.variables["upstream_uri"] = path
        for name, value in config.get("headers", {}).get("set", {}).items():
            self.headers[name] = resolve_var(_CAPTURE.sub(self._capture, value), self._known)

    def redirect(self, config: FrozenJson) -> str:
        """plugins/redirect.lua `_M.rewrite`: the header Location."""
        if "regex_uri" in config:
            return self._replaced(self.uri, config["regex_uri"])
        found = _OF_REDIRECT.finditer(config["uri"])
        return "".join(self._known.get(each[2] or each[3], "") or each[1] or each[4] or "" for each in found)

    @property
    def _known(self) -> dict[str, str]:
        own = {"uri": self.uri, "request_uri": self.target, "real_request_uri": self.target}
        return own | self.variables

    def _replaced(self, path: str, pairs: list[str]) -> str:
        for pattern, replacement in zip(pairs[::2], pairs[1::2], strict=True):
            if found := regex.search(pattern, path):
                self.captures = found
                return path[: found.start()] + (expanded(replacement, found) or "") + path[found.end() :]
        return path

    def _capture(self, found: regex.Match[str]) -> str:
        number = int(found[1])
        return self.captures[number] or "" if self.captures and number <= len(self.captures.groups()) else ""
