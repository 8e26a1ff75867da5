"""What replaces one directive: an annotation, a plugin with its configuration, or nothing because it is not needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from translation.plugins.rewrites import rewrite

_SPAN = TextPattern(r"([0-9]{1,9})(ms|[smhd]?)")
_UNITS = {"ms": 1, "": 1000, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Units of times in nginx → milliseconds."""
_VARIABLE = TextPattern(r"\$\{?([A-Za-z0-9_]+)\}?")
_REDIRECTS = (301, 302, 303, 307, 308)

_RENAMED = {
    "best_http_host": "http_host",
    "pass_access_scheme": "scheme",
    "pass_port": "server_port",
    "req_id": "apisix_request_id",
    "the_real_ip": "remote_addr",
}
"""Variables of ingress-nginx → those of the gateway with the same value."""
_MISSING = frozenset(
    {"escaped_request_uri", "location_path", "proxy_alternative_upstream_name", "proxy_upstream_name", "service_name"}
    | {"ingress_name", "namespace", "redirect_to_https", "service_port", "connection_upgrade"}
)
"""Variables that only the configuration of ingress-nginx has."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What replaces a directive.

    Attributes:
        text: What to do, as the end of a sentence.
        plugins: The plugins that do it; empty if it is an annotation, is not needed or has no equivalent.
        is_needed: Whether there is something to do at all.
    """

    text: str
    plugins: Mapping[str, JsonObject] = field(default_factory=dict)
    is_needed: bool = True


Values: TypeAlias = Mapping[str, str]
"""Variables of ingress-nginx whose values are known, such as `namespace`."""


def replacement_of(words: list[str], known: Values) -> Replacement:
    """Return the replacement of a directive, for all requests of an Ingress."""
    name, *given = words
    if why := _not_needed(words):
        return Replacement(why, is_needed=False)
    values = [_substituted(each, known) for each in given]
    if missing := _unknown_variable(values):
        return Replacement(f"no equivalent: the gateway has no variable ${missing}; write the value itself")
    if name in _ANNOTATIONS and values:
        return Replacement(f"the annotation {_ANNOTATIONS[name]}: {_quoted(' '.join(values))}")
    maker = _MAKERS.get(name)
    found = maker(values) if maker else None
    return found or Replacement("no equivalent annotation; look for a plugin")


def _substituted(text: str, known: Values) -> str:
    """Return a value with known variables replaced by their values, and renamed ones by their names."""

    def value(found: object) -> str:
        name = found[1]  # type: ignore[index]
        return known.get(name) or f"${_RENAMED.get(name, name)}"

    return _VARIABLE.sub(value, text)


def _unknown_variable(values: list[str]) -> str:
    names = (found[1] for value in values for found in _VARIABLE.finditer(value))
    return next((name for name in names if name in _MISSING), "")


def _not_needed(words: list[str]) -> str:
    name, *values = words
    header = values[0].lower() if values else ""
    if name in ("proxy_set_header", "grpc_set_header") and len(values) > 1:
        if header in ("upgrade", "connection"):
            return "not needed: the gateway passes WebSocket connections"
        if (header, values[1]) in _SENT_ANYWAY:
            return "not needed: the gateway sends this header"
    return "not needed: the gateway uses HTTP/1.1" if name == "proxy_http_version" else ""


_SENT_ANYWAY = {
    ("host", "$host"),
    ("host", "$http_host"),
    ("host", "$best_http_host"),
    ("x-real-ip", "$remote_addr"),
    ("x-request-id", "$req_id"),
    ("x-forwarded-proto", "$scheme"),
    ("x-forwarded-host", "$host"),
    ("x-forwarded-host", "$http_host"),
    ("x-forwarded-host", "$best_http_host"),
    ("x-forwarded-for", "$remote_addr"),
    ("x-forwarded-for", "$proxy_add_x_forwarded_for"),
}
"""Headers that backends get without a snippet."""


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def described(plugins: Mapping[str, JsonObject]) -> str:
    """Return plugins as a part of a sentence."""
    parts = (f"the plugin {name} with {json.dumps(config, ensure_ascii=False)}" for name, config in plugins.items())
    return " and ".join(parts)


def _plugin(name: str, config: JsonObject) -> Replacement:
    return Replacement(described({name: config}), {name: config})


def _set_response(values: list[str]) -> Replacement | None:
    if len(values) < 2:
        return None
    config: JsonObject = {"headers": {"add": [f"{values[0]}: {values[1]}"]}}
    return _plugin("response-rewrite", config if "always" in values[2:] else config | {"vars": _SUCCESSES})


_SUCCESSES = [["status", "in", [200, 201, 204, 206, 301, 302, 303, 304, 307, 308]]]
"""Responses that get headers of `add_header` without `always`."""


def _pairs(values: list[str]) -> dict[str, str]:
    if any(text.startswith("-") for text in values):
        return {}  # an option restricts the directive to a status or content type
    pairs = dict(text.split(":", 1) for text in values if ":" in text)
    return {name.strip(): text.strip() for name, text in pairs.items()}


def _more_set(values: list[str]) -> Replacement | None:
    found = _pairs(values)
    return _plugin("response-rewrite", {"headers": {"set": found}}) if found else None


def _more_set_input(values: list[str]) -> Replacement | None:
    found = _pairs(values)
    return _plugin("proxy-rewrite", {"headers": {"set": found}}) if found else None


def _clear(values: list[str]) -> Replacement | None:
    is_plain = values and not any(text.startswith("-") or "*" in text for text in values)
    return _plugin("response-rewrite", {"headers": {"remove": values}}) if is_plain else None


def _clear_input(values: list[str]) -> Replacement | None:
    is_plain = values and not any(text.startswith("-") or "*" in text for text in values)
    return _plugin("proxy-rewrite", {"headers": {"remove": values}}) if is_plain else None


def _set_request(values: list[str]) -> Replacement | None:
    if len(values) < 2:
        return None
    if values[0].lower() == "host":
        return Replacement(f"the annotation upstream-vhost: {_quoted(values[1])}")
    if not values[1]:
        return _plugin("proxy-rewrite", {"headers": {"remove": [values[0]]}})
    return _plugin("proxy-rewrite", {"headers": {"set": {values[0]: values[1]}}})


def _return(values: list[str]) -> Replacement | None:
    status = int(values[0]) if values and values[0].isdecimal() else 0
    if status in _REDIRECTS and len(values) > 1:
        plugins: dict[str, JsonObject] = {"redirect": {"uri": values[1], "ret_code": status}}
        if "$" in values[1]:  # which the annotation must not contain
            return Replacement(described(plugins), plugins)
        text = f'the annotation permanent-redirect: {_quoted(values[1])} with permanent-redirect-code: "{status}"'
        return Replacement(text, plugins)
    if status < 200:
        return None
    body = {"body": values[1]} if len(values) > 1 else {}
    return _plugin("fault-injection", {"abort": {"http_status": status, **body}})


def _rewrite(values: list[str]) -> Replacement | None:
    if len(values) < 2:
        return None
    is_elsewhere = values[1].startswith(("http://", "https://", "$scheme"))
    if values[-1] in ("redirect", "permanent") or is_elsewhere:
        code = 301 if values[-1] == "permanent" else 302
        target = values[1].removesuffix("?")  # which keeps nginx from adding the query
        query = {"append_query_string": True} if target == values[1] else {}
        return _plugin("redirect", {"regex_uri": [_whole(values[0]), target], "ret_code": code, **query})
    if values[-1] != "break":
        return Replacement(
            "no equivalent: another path would answer the request; write a rule of an ApisixRoute for it"
        )
    return _plugin("proxy-rewrite", {"regex_uri": rewrite(_whole(values[0]), values[1])})


def _whole(pattern: str) -> str:
    """Return the pattern for the whole path, which nginx replaces wherever it finds the given one."""
    is_whole = pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$") and "|" not in pattern
    return pattern if is_whole else rf"^[\s\S]*?(?:{pattern})[\s\S]*$"


def access(lines: list[tuple[str, str]]) -> Replacement | None:
    """Return what replaces the lines `allow` and `deny` of one block, of which nginx uses the first that matches.

    Args:
        lines: Directive and network of each line, in order.
    """
    last = lines[-1] if lines[-1][1] == "all" else ("", "")
    networks = lines[:-1] if last[0] else lines
    names = [network for _, network in networks]
    if "all" in names or any("$" in name or name == "unix:" for name in names):
        return None
    if not networks:
        if last[0] == "allow":
            return Replacement("not needed: all clients are allowed", is_needed=False)
        return _plugin("fault-injection", {"abort": {"http_status": 403}})
    kinds = {kind for kind, _ in networks}
    if kinds == {"allow"} and last[0] == "deny":
        text = f"the annotation whitelist-source-range: {_quoted(','.join(names))}"
        return Replacement(text, {"ip-restriction": {"whitelist": names}})
    if kinds == {"deny"} and last[0] != "deny":
        text = f"the annotation denylist-source-range: {_quoted(','.join(names))}"
        return Replacement(text, {"ip-restriction": {"blacklist": names}})
    if kinds == {"allow"}:
        return Replacement("not needed: without a line `deny`, all clients are allowed", is_needed=False)
    return None


def _timeout(annotation: str) -> Callable[[list[str]], Replacement | None]:
    """Return what replaces a timeout: an annotation, which takes whole seconds only."""

    def replacement(values: list[str]) -> Replacement | None:
        spans = list(_SPAN.finditer(values[0])) if values else []
        milliseconds = sum(int(each[1]) * _UNITS[each[2]] for each in spans)
        if "".join(each[0] for each in spans) != "".join(values) or not milliseconds or milliseconds % 1000:
            return Replacement(f"no equivalent: the annotation {annotation} takes whole seconds")
        return Replacement(f'the annotation {annotation}: "{milliseconds // 1000}"')

    return replacement


def _basic(values: list[str]) -> Replacement:
    if values == ["off"]:
        return Replacement("no equivalent; put the path into an Ingress without auth-type")
    return Replacement("the annotations auth-type and auth-secret")


def _gzip(values: list[str]) -> Replacement:
    if values == ["off"]:
        return Replacement("not needed, unless the ConfigMap sets use-gzip")
    return Replacement("the plugin gzip")


def _cache(values: list[str]) -> Replacement:
    if values == ["off"]:
        return Replacement("not needed, unless the ConfigMap enables a cache", is_needed=False)
    # Unlike nginx without proxy_cache_valid, the plugin caches responses without Cache-Control, whatever their cookies.
    sessions = '["$http_authorization", "$http_cookie"]'
    return Replacement(
        f'the plugin proxy-cache with {{"cache_bypass": {sessions}, "no_cache": {sessions}}}: without these fields,'
        " clients may get responses for other users"
    )


def _client_address(values: list[str]) -> Replacement | None:
    if len(values) != 1:
        return None
    if values == ["proxy_protocol"]:
        return _GLOBAL(values)
    source = f"http_{values[0].lower().replace('-', '_')}"
    text = f'the plugin real-ip with {{"source": {_quoted(source)}, "trusted_addresses": […]}}, the addresses of'
    return Replacement(f"{text} set_real_ip_from: without these, it trusts every client")


def _auth_variable(values: list[str]) -> Replacement | None:
    start = "$upstream_http_"
    if len(values) < 2 or not values[1].startswith(start):
        return None
    header = values[1].removeprefix(start).replace("_", "-").title()
    text = f"the annotation auth-response-headers: {_quoted(header)}, if the backend gets it under this name"
    return Replacement(text)


def _is(text: str, *, is_needed: bool = True) -> Callable[[list[str]], Replacement]:
    return lambda values: Replacement(text, is_needed=is_needed)


_ANNOTATIONS = {
    "client_max_body_size": "proxy-body-size",
    "proxy_buffering": "proxy-buffering",
    "proxy_request_buffering": "proxy-request-buffering",
    "proxy_next_upstream": "proxy-next-upstream",
    "proxy_ssl_name": "proxy-ssl-name",
    "proxy_ssl_verify": "proxy-ssl-verify",
    "proxy_ssl_server_name": "proxy-ssl-server-name",
}
"""Directives → the annotation with the same value."""

_GLOBAL = _is("a setting of the whole gateway (nginx_config in config.yaml)")
_LOGGED = _is("not needed for traffic: it only changes the log", is_needed=False)
_MAKERS: Mapping[str, Callable[[list[str]], Replacement | None]] = {
    "add_header": _set_response,
    "more_set_headers": _more_set,
    "more_clear_headers": _clear,
    "proxy_hide_header": _clear,
    "grpc_hide_header": _clear,
    "proxy_connect_timeout": _timeout("proxy-connect-timeout"),
    "proxy_read_timeout": _timeout("proxy-read-timeout"),
    "proxy_send_timeout": _timeout("proxy-send-timeout"),
    "proxy_set_header": _set_request,
    "grpc_set_header": _set_request,
    "more_set_input_headers": _more_set_input,
    "more_clear_input_headers": _clear_input,
    "return": _return,
    "rewrite": _rewrite,
    "auth_basic": _basic,
    "auth_request_set": _auth_variable,
    "limit_req": _is("the annotation limit-rps"),
    "limit_conn": _is("the annotation limit-connections"),
    "sub_filter": _is("the plugin response-rewrite with filters"),
    "proxy_cache": _cache,
    "real_ip_header": _client_address,
    "set_real_ip_from": lambda values: Replacement(f"the plugin real-ip, in trusted_addresses: {json.dumps(values)}"),
    "gzip": _gzip,
    "brotli": _is("the plugin brotli"),
    "proxy_buffers": _GLOBAL,
    "proxy_buffer_size": _GLOBAL,
    "large_client_header_buffers": _GLOBAL,
    "client_header_buffer_size": _GLOBAL,
    "keepalive_timeout": _GLOBAL,
    "access_log": _LOGGED,
    "error_log": _LOGGED,
    "log_not_found": _LOGGED,
    "set": _is("the value itself, where the variable is used"),
}
