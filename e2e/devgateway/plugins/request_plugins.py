"""Plugins of the request phase: they rewrite, redirect, reject and split requests."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import re
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from e2e.devgateway.dataplane.balancer import Balancer, Node
from e2e.devgateway.dataplane.error_pages import HTML, REDIRECT, TEXT, error_page
from e2e.devgateway.dataplane.expressions import compile_rules
from e2e.devgateway.dataplane.request_context import Context, Outgoing
from e2e.devgateway.references import References
from e2e.devgateway.store import Records
from translation.nginx.effects.requests import FORWARDED_FOR, FORWARDED_HOST, headers_of_scheme
from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.requests import REMOVED

Body = dict[str, Any]


def json_reply(status: int, body: object, *headers: tuple[str, str]) -> Outgoing:
    """Return the response with which a plugin rejects a request: JSON labelled text/plain, as the gateway sends it."""
    return Outgoing(status, [*TEXT, *headers], orjson.dumps(body) + b"\n")


def page_reply(status: int, *headers: tuple[str, str]) -> Outgoing:
    kind = REDIRECT if status in (301, 302) else HTML
    return Outgoing(status, [*kind, *headers], error_page(status))


@dataclass(slots=True)
class Runtime:
    """State shared by plugins: records, counters, and their own balancers."""

    store: Records
    references: References
    https_port: int
    counters: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)
    splits: dict[int, tuple[Body, Balancer]] = field(default_factory=dict)


def in_networks(address: str, networks: Iterable[str]) -> bool:
    """Return whether an address is one of, or in one of, the networks."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in ipaddress.ip_network(network, strict=False) for network in networks)


# Access.


async def ip_restriction(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    allowed = "whitelist" in conf and in_networks(context.remote_addr, conf["whitelist"])
    denied = "blacklist" in conf and in_networks(context.remote_addr, conf["blacklist"])
    if denied or ("whitelist" in conf and not allowed):
        message = conf.get("message", "Your IP address is not allowed")
        return json_reply(conf.get("response_code", 403), {"message": message})
    return None


async def real_ip(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    if "trusted_addresses" in conf and not in_networks(context.request.peer, conf["trusted_addresses"]):
        return None
    value = str(context.lookup(conf["source"]) or "").split(",")[-1].strip()
    if value:
        context.remote_addr = value
    return None


async def consumer_restriction(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    kind = conf.get("type", "consumer_name")
    group = (context.consumer or {}).get("group_id")
    value = {
        "consumer_name": context.consumer_name,
        "service_id": context.service_id or None,
        "route_id": context.route_id or None,
        "consumer_group_id": group,
    }[kind]
    if value is None:
        text = f"The request is rejected, please check the {kind} for this request"
        return json_reply(401, {"message": text})
    methods = {item.get("user"): item.get("methods", []) for item in conf.get("allowed_by_methods", ())}
    refused = (
        value in conf.get("blacklist", ())
        or ("whitelist" in conf and value not in conf["whitelist"])
        or ("whitelist" not in conf and methods and context.request.method not in methods.get(value, []))
    )
    if refused:
        message = conf.get("rejected_msg", f"The {kind} is forbidden.")
        return json_reply(conf.get("rejected_code", 403), {"message": message})
    return None


# Limits.


def _limit_key(conf: Body, context: Context, plugin: str) -> tuple[str, ...]:
    key = conf.get("key", "remote_addr")
    match conf.get("key_type", "var"):
        case "constant":
            value: object = key
        case "var_combination":
            value = context.expand(key)
        case _:
            value = context.lookup(key)
    return plugin, str(conf.get("group", context.route_id)), str(value or context.remote_addr)


def _rejected(conf: Body, *headers: tuple[str, str]) -> Outgoing:
    status = conf.get("rejected_code", 503)
    if "rejected_msg" in conf:
        return json_reply(status, {"error_msg": conf["rejected_msg"]}, *headers)
    return page_reply(status, *headers)


async def limit_count(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    """Count requests in a fixed window, in this process only."""
    if "count" not in conf:
        return None
    limit, window = int(context.expand(str(conf["count"]))), float(context.expand(str(conf["time_window"])))
    key, now = _limit_key(conf, context, "limit-count"), time.monotonic()
    used, until = runtime.counters.get(key, (0.0, now + window))
    if now >= until:
        used, until = 0.0, now + window
    rejected = used >= limit
    if not rejected:
        used += 1
        runtime.counters[key] = used, until
    headers = [
        ("X-RateLimit-Limit", str(limit)),
        ("X-RateLimit-Remaining", str(int(limit - used))),
        ("X-RateLimit-Reset", f"{until - now:.4g}"),
    ]
    shown = headers if conf.get("show_limit_quota_header", True) else []
    if rejected:
        return _rejected(conf, *shown)
    context.response_headers.extend(shown)
    return None


async def limit_req(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    """Leaky bucket: `rate` per second, `burst` more; rejected requests do not add to the excess."""
    key, now = _limit_key(conf, context, "limit-req"), time.monotonic()
    excess, last = runtime.counters.get(key, (-1.0, now))
    excess = max(excess - conf["rate"] * (now - last), -1.0) + 1
    if excess > conf["burst"]:
        return _rejected(conf)
    runtime.counters[key] = excess, now
    if excess > 0 and not conf.get("nodelay"):
        await asyncio.sleep(excess / conf["rate"])
    return None


# Rewriting.


def _regex_target(pattern: str, template: str, text: str) -> str | None:
    """Replace the first match of `pattern` in `text`, where `$1` and `${1}` are a group; None without a match."""
    found = re.search(pattern, text)
    if found is None:
        return None
    filled = re.sub(r"\$(?:\{(\d+)\}|(\d+))", lambda each: found.group(int(each[1] or each[2])) or "", template)
    return text[: found.start()] + filled + text[found.end() :]


async def proxy_rewrite(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    context.method = conf.get("method", context.method)
    context.upstream_host = conf.get("host", context.upstream_host)
    path, groups = None, None
    raw = conf.get("use_real_request_uri_unsafe")
    text = context.request.target if raw else context.uri
    if "uri" in conf:
        path = context.expand(conf["uri"])
    elif "regex_uri" in conf:
        rules = conf["regex_uri"]
        for pattern, template in zip(rules[::2], rules[1::2], strict=False):
            path, groups = _regex_target(pattern, template, text), re.search(pattern, text)
            if path is not None and not raw:
                path = quote(path, safe="/?&=%:@!$'()*+,;~-._")
            if path is not None:
                break
    if raw:
        context.upstream_target = text if path is None else path
    elif path is not None:
        joiner = "&" if "?" in path else "?"
        context.upstream_target = path + (joiner + context.query if context.query else "")
    _rewrite_headers(conf.get("headers", {}), context, groups)
    return None


def _rewrite_headers(changes: Body, context: Context, groups: re.Match[str] | None) -> None:
    """Change headers; `$1` is a group of `regex_uri`, and a header that becomes empty is not sent."""

    def filled(text: str) -> str:
        if groups:
            text = re.sub(r"\$(\d)", lambda found: groups.group(int(found.group(1))) or "", text)
        return context.expand(text)

    if not changes.keys() & {"set", "add", "remove"}:
        changes = {"set": changes}
    for name, value in changes.get("add", {}).items():
        context.headers.append((name, context.expand(str(value))))
    for name, value in changes.get("set", {}).items():
        text = filled(str(value))
        if text:
            context.set_header(name, text)
        else:
            context.remove_header(name)
    for name in changes.get("remove", ()):
        context.remove_header(name)


async def redirect(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    status = conf.get("ret_code", 302)
    if conf.get("http_to_https"):
        if context.scheme == "https":
            return None
        port = "" if runtime.https_port == 443 else f":{runtime.https_port}"
        status = 301 if context.request.method in ("GET", "HEAD") else 308
        return page_reply(status, ("Location", f"https://{context.host}{port}{context.request.target}"))
    if "regex_uri" in conf:
        location = _regex_target(conf["regex_uri"][0], conf["regex_uri"][1], context.uri)
    else:
        location = context.expand(conf["uri"]) if "uri" in conf else None
    if location is None:
        return None
    if conf.get("encode_uri"):
        location = quote(location, safe="/?&=%:@!$'()*+,;~-._")
    if conf.get("append_query_string") and context.query:
        location += ("&" if "?" in location else "?") + context.query
    return page_reply(status, ("Location", location))


async def request_id(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    name = conf.get("header_name", "X-Request-Id")
    made = secrets.token_hex(16) if conf.get("algorithm") == "range_id" else str(uuid.uuid4())
    value = context.request.get(name) or made
    context.set_header(name, value)
    if conf.get("include_in_response", True):
        context.response_headers.append((name, value))
    return None


async def fault_injection(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    delay, abort = conf.get("delay"), conf.get("abort")
    if delay and _applies(delay, context):
        await asyncio.sleep(delay["duration"])
    if abort and _applies(abort, context):
        headers = [(name, context.expand(str(value))) for name, value in abort.get("headers", {}).items()]
        if "body" in abort:
            return Outgoing(abort["http_status"], [*TEXT, *headers], context.expand(abort["body"]).encode())
        return page_reply(abort["http_status"], *headers)
    return None


def _applies(conf: Body, context: Context) -> bool:
    if "percentage" in conf and random.random() * 100 >= conf["percentage"]:
        return False
    rules = conf.get("vars")
    return not rules or any(compile_rules(rule).holds(context.lookup) for rule in rules)


async def traffic_split(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    """Choose among weighted upstreams; a target without upstream means the route's own."""
    for rule in conf.get("rules", ()):
        matches = rule.get("match")
        if matches and not any(compile_rules(m.get("vars", [])).holds(context.lookup) for m in matches):
            continue
        targets = rule.get("weighted_upstreams", [{"weight": 1}])
        target = targets[_split(runtime, rule, targets).port]
        if "upstream_id" in target:
            name = str(target["upstream_id"])
            record = runtime.store.kind("upstreams").get(name)
            if record is None:
                return Outgoing(500, list(TEXT), f"failed to fetch upstream info by upstream id: {name}".encode())
            context.upstream, context.upstream_key = record.value, f"upstreams/{name}"
        elif "upstream" in target:
            context.upstream, context.upstream_key = target["upstream"], ""
        return None
    return None


def _split(runtime: Runtime, rule: Body, targets: list[Body]) -> Node:
    """Select a target by smooth weighted round robin; the node's port is its position in the list."""
    known = runtime.splits.get(id(rule))
    if known is None:
        nodes = [Node("", index, target.get("weight", 1)) for index, target in enumerate(targets)]
        known = runtime.splits[id(rule)] = (rule, Balancer({}, nodes))
    balancer = known[1]
    return balancer.round_robin([node for node in balancer.nodes if node.weight > 0] or balancer.nodes)


async def client_control(conf: Body, context: Context, _: Runtime) -> Outgoing | None:
    """Reject a body whose length is known to be too large, after the function of ingress-nginx has run."""
    want = conf.get(FIELD, {})
    if "https" in want and context.scheme == "http":
        target = context.request.target if want["https"]["keeps_slash"] else context.request.target.removesuffix("/")
        return page_reply(want["https"]["code"], ("Location", f"https://{context.host}{target}"))
    prepare_request(want, context)
    limit, length = conf.get("max_body_size", 0), context.request.get("content-length") or "0"
    return page_reply(413) if limit and length.isdigit() and int(length) > limit else None


def prepare_request(want: Body, context: Context) -> None:
    """Change a request as the function `REQUEST` of the provider of ingress-nginx does."""
    if client := want.get("client"):
        sent = {FORWARDED_FOR: f"$http_{client['addresses'].replace('-', '_')}", FORWARDED_HOST: f"${client['host']}"}
        changes = {"set": sent | headers_of_scheme(context.scheme), "remove": REMOVED}
        _rewrite_headers(changes, context, None)
        context.upstream_target = context.request.target
    if want.get("id"):
        context.set_header("X-Request-ID", context.request.get("x-request-id") or secrets.token_hex(16))


Act = Callable[[Body, Context, Runtime], Awaitable[Outgoing | None]]
ACTS: dict[str, Act] = {
    "real-ip": real_ip,
    "request-id": request_id,
    "client-control": client_control,
    "fault-injection": fault_injection,
    "ip-restriction": ip_restriction,
    "consumer-restriction": consumer_restriction,
    "proxy-rewrite": proxy_rewrite,
    "limit-count": limit_count,
    "limit-req": limit_req,
    "traffic-split": traffic_split,
    "redirect": redirect,
}
