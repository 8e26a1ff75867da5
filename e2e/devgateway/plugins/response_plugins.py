"""Plugins of the response phase."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from typing import Any

from e2e.devgateway.dataplane.error_pages import TEXT
from e2e.devgateway.dataplane.expressions import compile_rules
from e2e.devgateway.dataplane.request_context import Context, Outgoing
from e2e.devgateway.plugins.request_plugins import Act, Runtime
from translation.nginx.functions.attached import FIELD

Body = dict[str, Any]


async def collect(outgoing: Outgoing) -> bytes:
    """Read a streamed body to its end and return it."""
    if not isinstance(outgoing.body, bytes):
        outgoing.body = b"".join([piece async for piece in outgoing.body])
    return outgoing.body


async def response_rewrite(conf: Body, context: Context, outgoing: Outgoing) -> None:
    if conf.get("vars") and not compile_rules(conf["vars"]).holds(_response_lookup(context, outgoing)):
        return
    outgoing.status = conf.get("status_code", outgoing.status)
    if "body" in conf:
        await collect(outgoing)
        text = conf["body"]
        outgoing.replace_body(base64.b64decode(text) if conf.get("body_base64") else text.encode())
    elif "filters" in conf:
        await _filter(conf["filters"], outgoing)
    headers = conf.get("headers", {})
    if not headers.keys() & {"set", "add", "remove"}:
        headers = {"set": headers}
    for line in headers.get("add", ()):
        name, _, value = line.partition(":")
        outgoing.headers.append((name.strip(), context.expand(value.strip())))
    for name, value in headers.get("set", {}).items():
        outgoing.set(name, context.expand(str(value)))
    for name in headers.get("remove", ()):
        outgoing.remove(name)


def _response_lookup(context: Context, outgoing: Outgoing) -> Callable[[str], object]:
    def lookup(name: str) -> object:
        return str(outgoing.status) if name == "status" else context.lookup(name)

    return lookup


async def _filter(filters: list[Body], outgoing: Outgoing) -> None:
    body = await collect(outgoing)
    if any(name.lower() == "content-encoding" and value == "gzip" for name, value in outgoing.headers):
        body = gzip.decompress(body)
    text = body.decode("utf-8", "surrogateescape")
    for rule in filters:
        template = re.sub(r"\$(\d+)", r"\\\1", rule["replace"])
        text = re.sub(rule["regex"], template, text, count=0 if rule.get("scope") == "global" else 1)
    outgoing.replace_body(text.encode("utf-8", "surrogateescape"))


async def echo(conf: Body, _: Context, outgoing: Outgoing) -> None:
    body = await collect(outgoing)
    if "body" in conf:
        body = conf["body"].encode()
    outgoing.replace_body(conf.get("before_body", "").encode() + body + conf.get("after_body", "").encode())
    for name, value in conf.get("headers", {}).items():
        outgoing.set(name, str(value))


async def cors_preflight(_: Body, context: Context, __: Runtime) -> Outgoing | None:
    return Outgoing(200, list(TEXT)) if context.request.method == "OPTIONS" else None


async def cors(conf: Body, context: Context, outgoing: Outgoing) -> None:
    origin = _allowed_origin(conf, context)
    if origin is None:
        return
    headers = conf.get("allow_headers", "*")
    if headers == "**":
        headers = context.request.get("access-control-request-headers") or ""
    methods = conf.get("allow_methods", "*")
    outgoing.set("Access-Control-Allow-Origin", origin)
    if origin != "*":
        outgoing.headers.append(("Vary", "Origin"))
    every = "GET,POST,PUT,DELETE,PATCH,HEAD,OPTIONS,CONNECT,TRACE"
    outgoing.set("Access-Control-Allow-Methods", every if methods == "**" else methods)
    outgoing.set("Access-Control-Max-Age", str(conf.get("max_age", 5)))
    if headers:
        outgoing.set("Access-Control-Allow-Headers", headers)
    if conf.get("expose_headers"):
        outgoing.set("Access-Control-Expose-Headers", conf["expose_headers"])
    if conf.get("allow_credential"):
        outgoing.set("Access-Control-Allow-Credentials", "true")


def _allowed_origin(conf: Body, context: Context) -> str | None:
    allowed, origin = conf.get("allow_origins", "*"), context.request.get("origin")
    if "allow_origins_by_regex" in conf:
        found = origin and any(re.search(pattern, origin) for pattern in conf["allow_origins_by_regex"])
        return origin if found else None
    if allowed == "*":
        return "*"
    if allowed == "**":
        return origin or "*"
    return origin if origin in allowed.split(",") else None


async def constant_headers(conf: Body, context: Context, outgoing: Outgoing) -> None:
    """Set the headers of responses, as the function `REQUEST` of the provider of ingress-nginx does."""
    want = conf.get(FIELD)
    if want is None:
        return
    if outgoing.status >= 500:
        outgoing.remove("X-APISIX-Upstream-Status")
    secure = want.get("secure", {}) if context.scheme == "https" else {}
    for name, value in {**want.get("headers", {}), **secure}.items():
        outgoing.set(name, value)


Change = Callable[[Body, Context, Outgoing], Any]
CHANGES: dict[str, Change] = {
    "client-control": constant_headers,
    "cors": cors,
    "echo": echo,
    "response-rewrite": response_rewrite,
}
ANY_ANSWER = frozenset({"client-control", "response-rewrite"})
"""Plugins that also change responses of the gateway itself and of earlier plugins."""
PREFLIGHT: dict[str, Act] = {"cors": cors_preflight}
