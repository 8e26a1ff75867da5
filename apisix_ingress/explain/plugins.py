"""The plugins of a route that may respond themselves: what they respond to a request, as far as that is known.

Phases and priorities are those of APISIX 3.18. A plugin that is in none of the lists may respond, so that the response
depends on it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apisix_ingress.explain.request import Unknown
from apisix_ingress.explain.templates import PluginScope
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in

QUIET = frozenset({
    "attach-consumer-label", "body-transformer", "brotli", "clickhouse-logger", "datadog", "echo",
    "elasticsearch-logger", "error-log-logger", "file-logger", "google-cloud-logging", "gzip", "http-logger",
    "kafka-logger", "lago", "log-rotate", "loggly", "loki-logger", "node-status", "opentelemetry", "prometheus",
    "proxy-buffering", "proxy-control", "proxy-mirror", "proxy-rewrite", "real-ip", "request-id", "response-rewrite",
    "rocketmq-logger", "server-info", "skywalking", "skywalking-logger", "sls-logger", "splunk-hec-logging", "syslog",
    "tcp-logger", "tencent-cloud-cls", "traffic-label", "traffic-split", "udp-logger", "zipkin"
})  # fmt: skip
"""Plugins that never respond themselves; `traffic-split` and `response-rewrite` are evaluated elsewhere."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a plugin.

    Attributes:
        status: The HTTP status.
        cause: Why, as the rest of a sentence that begins with the plugin's name.
        location: Of a redirect; empty if there is none. Variables whose values are unknown stay in it as `$name`.
        by_client: Whether it depends on who sends the request, e.g. on credentials.
    """

    status: int
    cause: str
    location: str = ""
    by_client: bool = False


class MayReply(Exception):
    """Whether the plugin responds is not known; the message is the rest of a sentence after the plugin's name."""


Act = Callable[[FrozenJson, PluginScope], Reply | None]


def _fault_injection(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    abort = mapping_in(conf.get("abort"))
    met = scope.any_holds(abort.get("vars"))
    if not abort or met is False:
        return None
    status = int(abort["http_status"])
    if met is None or abort.get("percentage", 100) < 100:
        raise MayReply(f"may respond with {status}")
    headers = {str(name).lower(): value for name, value in mapping_in(abort.get("headers")).items()}
    location = str(headers.get("location", "")) if 300 <= status < 400 else ""
    return Reply(status, "responds itself", scope.shown(location))


def _redirect(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    request = scope.request
    if conf.get("http_to_https"):
        if request.scheme == "https":
            return None
        status = 301 if request.method in ("GET", "HEAD") else 308
        return Reply(status, "redirects to https", f"https://{request.host}{request.target}")
    location = scope.shown(str(conf["uri"])) if "uri" in conf else None
    if location is None and (rule := list_in(conf.get("regex_uri"))):
        location = scope.replaced(str(rule[0]), str(rule[1]), request.path)
    if location is None:
        return None
    query = request.target.partition("?")[2]
    if location and conf.get("append_query_string") and query:
        location += ("&" if "?" in location else "?") + query
    return Reply(int(conf.get("ret_code", 302)), "redirects", location)


def _cors(_: FrozenJson, scope: PluginScope) -> Reply | None:
    return Reply(200, "responds to OPTIONS") if scope.request.method == "OPTIONS" else None


def _ip_restriction(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    address = ipaddress.ip_address(str(scope.variable("remote_addr")))
    allowed, denied = (any(address in _network(each) for each in conf.get(name, ())) for name in _LISTS)
    if not denied and (allowed or "whitelist" not in conf):
        return None
    return Reply(int(conf.get("response_code", 403)), f"rejects the client {address}", by_client=True)


_LISTS = ("whitelist", "blacklist")


def _network(text: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(str(text), strict=False)


def _uri_blocker(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    rules, ignore_case = [str(each) for each in list_in(conf.get("block_rules"))], bool(conf.get("case_insensitive"))
    if not scope.contains(rules, scope.request.target, ignore_case=ignore_case):
        return None
    return Reply(int(conf.get("rejected_code", 403)), "blocks the path")


def _client_control(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    limit, headers = int(conf.get("max_body_size") or 0), scope.request.headers
    https = mapping_in(mapping_in(conf.get("ingress_nginx")).get("https"))
    if https and scope.request.scheme == "http":
        target = scope.request.target if https.get("keeps_slash") else scope.request.target.removesuffix("/")
        return Reply(int(https.get("code", 308)), "redirects to https", f"https://{scope.request.host}{target}")
    if limit and "transfer-encoding" in headers:
        raise MayReply(f"responds with 413 to a body of more than {limit} bytes")
    length = headers.get("content-length", "")
    too_long = limit and length.isascii() and length.isdecimal() and int(length[:20]) > limit
    return Reply(413, f"limits bodies to {limit} bytes") if too_long else None


def _workflow(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    for rule in list_in(conf.get("rules")):
        met = scope.holds(rule.get("case"))
        if met is False:
            continue
        action, *given = next(iter(list_in(rule.get("actions"))), [""])
        if met is None or action != "return":
            raise MayReply("may reject the request")
        return Reply(int(mapping_in(given[0] if given else {}).get("code", 403)), "responds itself")
    return None


def _mocking(conf: FrozenJson, _: PluginScope) -> Reply | None:
    return Reply(int(conf.get("response_status", 200)), "responds itself")


def _basic_auth(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    return _credential(conf, "authorization" in scope.request.headers)


def _key_auth(conf: FrozenJson, scope: PluginScope) -> Reply | None:
    header, query = str(conf.get("header", "apikey")).lower(), str(conf.get("query", "apikey"))
    return _credential(conf, header in scope.request.headers or scope.variable(f"arg_{query}") is not None)


def _credential(conf: FrozenJson, is_given: bool) -> Reply | None:
    if is_given or conf.get("anonymous_consumer"):
        raise MayReply("responds with 401 to wrong credentials")
    return Reply(401, "requires credentials", by_client=True)


def _csrf(_: FrozenJson, scope: PluginScope) -> Reply | None:
    if scope.request.method in ("GET", "HEAD", "OPTIONS"):
        return None
    raise MayReply("may reject the request")


ACTS: Mapping[str, tuple[str, int, Act]] = {
    "client-control": ("rewrite", 22000, _client_control),
    "fault-injection": ("rewrite", 11000, _fault_injection),
    "cors": ("rewrite", 4000, _cors),
    "uri-blocker": ("rewrite", 2900, _uri_blocker),
    "basic-auth": ("rewrite", 2520, _basic_auth),
    "key-auth": ("rewrite", 2500, _key_auth),
    "redirect": ("rewrite", 900, _redirect),
    "mocking": ("access", 10900, _mocking),
    "ip-restriction": ("access", 3000, _ip_restriction),
    "csrf": ("access", 2980, _csrf),
    "workflow": ("access", 1006, _workflow),
}
"""Plugin → phase, priority and function. The phase rewrite of every plugin comes before the phase access of any."""


def replies(plugins: FrozenJson, scope: PluginScope) -> tuple[str, Reply | None, tuple[str, ...]]:
    """Return the plugin that responds, its response, and what that depends on; the name is empty without a response."""
    others = sorted(plugins.keys() - QUIET - ACTS.keys())
    may = [f"{name} may respond itself" for name in others if scope.applies(mapping_in(plugins[name])) is not False]
    for name in sorted(plugins.keys() & ACTS.keys(), key=lambda name: _place(name, plugins[name])):
        conf = mapping_in(plugins[name])
        met = scope.applies(conf)
        if met is False:
            continue
        try:
            reply = ACTS[name][2](conf, scope)
        except MayReply as doubt:
            may.append(f"{name} {doubt}")
        except (Unknown, ValueError) as error:
            may.append(f"{name} may respond itself: {error}")
        else:
            if reply is not None and met:
                return name, reply, tuple(may)
            may += [f"{name} may respond with {reply.status}, depending on its filter"] if reply is not None else []
    return "", None, tuple(may)


def _place(name: str, conf: object) -> tuple[bool, int, str]:
    phase, priority, _ = ACTS[name]
    own = mapping_in(mapping_in(conf).get("_meta")).get("priority", priority)
    return phase != "rewrite", -int(own), name
