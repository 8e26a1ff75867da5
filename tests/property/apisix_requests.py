"""What APISIX 3.18 connects to for a request, by its source; independent of the code under test.

Each function names the function of APISIX, or of a library that it uses, whose behaviour it repeats. Regular
expressions of the gateway run in `regex`, whose syntax is close to that of PCRE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import regex

VARIABLE = regex.compile(r"(?<!\\)\$(\{\s*([^}]+?)\s*\}|([\w\.]+))", regex.ASCII)
"""core/utils.lua `resolve_var`."""

URI = regex.compile(r"^(?:(http[s]?):)?//((?:[^\[\]:/\?]+)|(?:\[.+\]))(?::(\d+))?([^\?]*)\??(.*)", regex.ASCII)
"""lua-resty-http `parse_uri`."""

SECONDS = 0.5
"""A pattern that takes longer is an error in the gateway (`lua_regex_match_limit`), which then sends no request."""


class Connection(NamedTuple):
    scheme: str
    host: str
    port: str


def resolve_var(template: str, variables: Mapping[str, str]) -> str:
    """core/utils.lua `resolve_var`."""

    def value(found: regex.Match[str]) -> str:
        name, *default = regex.split(r"\s*\?\?\s*", found[2] or found[3])
        return variables.get(name, default[0] if default else "")

    return str(VARIABLE.sub(value, template))


def parse_uri(uri: str, scheme: str = "http") -> Connection | None:
    """lua-resty-http `parse_uri`; None if it is an error, and there is no connection."""
    found = URI.match(uri)
    if found is None:
        return None
    own = found[1] or scheme
    return Connection(own, found[2], found[3] or ("443" if own == "https" else "80"))


def sent_by_function(uri: str, base: str, variables: Mapping[str, str]) -> Connection | None:
    """translation/nginx/functions/destinations.py `leads_elsewhere`, then lua-resty-http `request_uri`."""
    resolved, start = resolve_var(uri, variables), resolve_var(base, variables)
    rest = resolved[len(start) :]
    if not resolved.startswith(start) or not (rest == "" or rest[0] in "/?"):
        return None
    found, wanted = parse_uri(resolved), parse_uri(start)
    return found if found == wanted else None


def expanded(replacement: str, found: regex.Match[str]) -> str | None:
    """lua-nginx-module `ngx_http_lua_compile_complex_value`, for numbered groups; None if it is an error."""
    text, at = "", 0
    while at < len(replacement):
        if replacement[at] != "$":
            text, at = text + replacement[at], at + 1
            continue
        name = regex.compile(r"\$(?:\$|\{(\d+)\}|(\d+))", regex.ASCII).match(replacement, at)
        if name is None:
            return None
        number = name[1] or name[2]
        if number is None:
            text += "$"
        elif int(number) <= found.re.groups:
            text += found[int(number)] or ""
        at = name.end()
    return text


def rewritten(config: Mapping[str, Any], path: str, variables: Mapping[str, str]) -> str | None:
    """plugins/proxy-rewrite.lua `_M.rewrite`: the variable `upstream_uri`; None after an error."""
    raw = config.get("use_real_request_uri_unsafe")
    result = path
    if "uri" in config:
        result = resolve_var(config["uri"], variables)
    else:
        texts = config.get("regex_uri", ())
        for pattern, replacement in zip(texts[::2], texts[1::2], strict=True):
            try:
                found = regex.compile(pattern).search(result, timeout=SECONDS)
            except (regex.error, TimeoutError):
                return None
            if found:
                text = expanded(replacement, found)
                if text is None:
                    return None
                result = result[: found.start()] + text + result[found.end() :]
                break
    if raw:
        return result
    return quote(result, safe="/?:@&=+$,;!*'()#[]%-._~") or None  # a path without characters is an error


def proxy_pass(url: str) -> Connection:
    """nginx `ngx_http_proxy_eval` with `ngx_parse_inet_url` and `ngx_parse_inet6_url`."""
    scheme, _, rest = url.partition("://")
    default = "443" if scheme == "https" else "80"
    if rest.startswith("["):
        host, bracket, following = rest.partition("]")
        port = following[1:].partition("/")[0] if following.startswith(":") else ""
        return Connection(scheme, host + bracket, port or default)
    ends = [place for place in (rest.find("/"), rest.find("?")) if place >= 0]
    host, _, port = (rest[: min(ends)] if ends else rest).partition(":")
    return Connection(scheme, host, port or default)


def upstream_of(uri: str) -> Connection:
    """The template of nginx.conf: `proxy_pass $upstream_scheme://apisix_backend$upstream_uri`."""
    return proxy_pass(f"http://apisix_backend{uri}")
