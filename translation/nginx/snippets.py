"""Typed replacements for the directives in snippets, with their values. Snippets are read, never executed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from translation.plugins.rewrites import rewrite

_LONGEST = 8192
"""Characters of a snippet that are read."""

_DIRECTIVE = TextPattern(r"""((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^;{}"'])*)([;{}]|$)""")
_WORD = TextPattern(r""""((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\S+)""")
_COMMENT = TextPattern(r"(?m)(^|\s)#.*$")
_SECONDS = ValuePattern(r"[0-9]+s")
_STATUS = range(300, 309)


def suggestions(snippet: str) -> Iterator[str]:
    """Yield a replacement for each directive of a snippet, each once."""
    seen: set[str] = set()
    for words, is_block in _directives(snippet[:_LONGEST]):
        line = f"{words[0]}: {_BLOCK}" if is_block else f"{words[0]}: {_replacement(words)}"
        if line not in seen:
            seen.add(line)
            yield line


_BLOCK = "a block has no equivalent; use an ApisixRoute with match.exprs for the condition or the path"
_UNKNOWN = "no equivalent annotation; look for a plugin"


def _directives(snippet: str) -> Iterator[tuple[list[str], bool]]:
    plain = _COMMENT.sub("", snippet)
    for found in _DIRECTIVE.finditer(plain):
        text, end = found.groups()
        words = [next(filter(None, word.groups()), "") for word in _WORD.finditer(text)]
        if words:
            yield words, end == "{"


def _replacement(words: list[str]) -> str:
    name, *values = words
    if name in _ANNOTATIONS and values:
        return f"the annotation {_ANNOTATIONS[name]}: {_quoted(values[0])}"
    maker = _MAKERS.get(name)
    return (maker(values) if maker else "") or _UNKNOWN


def _quoted(text: str) -> str:
    return json.dumps(text[:-1] if _SECONDS.fits(text) else text, ensure_ascii=False)


def _plugin(name: str, config: Mapping[str, object]) -> str:
    return f"the plugin {name} with {json.dumps(config, ensure_ascii=False)}"


def _set_response(values: list[str]) -> str:
    if len(values) < 2:
        return ""
    return _plugin("response-rewrite", {"headers": {"set": {values[0]: values[1]}}})


def _more_set(values: list[str]) -> str:
    pairs = dict(text.split(":", 1) for text in values if ":" in text)
    found = {name.strip(): text.strip() for name, text in pairs.items()}
    return _plugin("response-rewrite", {"headers": {"set": found}}) if found else ""


def _clear(values: list[str]) -> str:
    return _plugin("response-rewrite", {"headers": {"remove": values}}) if values else ""


def _set_request(values: list[str]) -> str:
    if len(values) < 2:
        return ""
    if values[0].lower() == "host":
        return f"the annotation upstream-vhost: {_quoted(values[1])}"
    if not values[1]:
        return _plugin("proxy-rewrite", {"headers": {"remove": [values[0]]}})
    return _plugin("proxy-rewrite", {"headers": {"set": {values[0]: values[1]}}})


def _return(values: list[str]) -> str:
    status = int(values[0]) if values and values[0].isdecimal() else 0
    if status in _STATUS and len(values) > 1:
        return f'the annotation permanent-redirect: {_quoted(values[1])} with permanent-redirect-code: "{status}"'
    return _plugin("fault-injection", {"abort": {"http_status": status}}) if status >= 200 else ""


def _rewrite(values: list[str]) -> str:
    if len(values) < 2:
        return ""
    if values[-1] in ("redirect", "permanent"):
        code = 301 if values[-1] == "permanent" else 302
        return _plugin("redirect", {"regex_uri": values[:2], "ret_code": code})
    return _plugin("proxy-rewrite", {"regex_uri": rewrite(*values[:2])})


def _deny(values: list[str]) -> str:
    if values == ["all"]:
        return "the annotation whitelist-source-range with the allowed networks"
    return f"the annotation denylist-source-range: {_quoted(','.join(values))}"


def _allow(values: list[str]) -> str:
    return f"the annotation whitelist-source-range: {_quoted(','.join(values))}" if values != ["all"] else ""


def _is(text: str) -> Callable[[list[str]], str]:
    return lambda values: text


_ANNOTATIONS = {
    "client_max_body_size": "proxy-body-size",
    "proxy_connect_timeout": "proxy-connect-timeout",
    "proxy_read_timeout": "proxy-read-timeout",
    "proxy_send_timeout": "proxy-send-timeout",
    "proxy_buffering": "proxy-buffering",
    "proxy_request_buffering": "proxy-request-buffering",
    "proxy_next_upstream": "proxy-next-upstream",
}
"""Directives → the annotation with the same value."""

_GLOBAL = _is("a setting of the whole gateway (nginx_config in config.yaml)")
_MAKERS: Mapping[str, Callable[[list[str]], str]] = {
    "add_header": _set_response,
    "more_set_headers": _more_set,
    "more_clear_headers": _clear,
    "proxy_hide_header": _clear,
    "proxy_set_header": _set_request,
    "more_set_input_headers": lambda values: _more_set(values).replace("response-rewrite", "proxy-rewrite"),
    "return": _return,
    "rewrite": _rewrite,
    "deny": _deny,
    "allow": _allow,
    "auth_basic": _is("the annotations auth-type and auth-secret"),
    "limit_req": _is("the annotation limit-rps"),
    "limit_conn": _is("the annotation limit-connections"),
    "sub_filter": _is("the plugin response-rewrite with filters"),
    "proxy_cache": _is("the plugin proxy-cache"),
    "gzip": _is("the plugin gzip"),
    "brotli": _is("the plugin brotli"),
    "proxy_buffers": _GLOBAL,
    "proxy_buffer_size": _GLOBAL,
    "large_client_header_buffers": _GLOBAL,
    "access_log": _GLOBAL,
    "error_log": _GLOBAL,
    "keepalive_timeout": _GLOBAL,
    "set": _is("the value itself; the gateway supports the variables of nginx"),
}
