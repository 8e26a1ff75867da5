"""The data plane: matches requests, runs plugins, selects a node, forwards requests and responses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

from e2e.devgateway.adminapi.record_kinds import plain_key
from e2e.devgateway.dataplane.balancer import DEFAULT_PORTS, Balancer, Node, UnknownAlgorithm, nodes_of
from e2e.devgateway.dataplane.error_pages import SERVER
from e2e.devgateway.dataplane.expressions import compile_rules
from e2e.devgateway.dataplane.http1 import BadMessage, Connection, Headers, Request
from e2e.devgateway.dataplane.request_context import Context, Outgoing
from e2e.devgateway.dataplane.router import Router
from e2e.devgateway.dataplane.tls_listener import load_pair
from e2e.devgateway.dataplane.upstream_connections import Answer, Pool, Timeouts, TooSlow, Unreachable
from e2e.devgateway.plugins.auth_plugins import AUTH_ACTS
from e2e.devgateway.plugins.request_plugins import ACTS, Runtime, json_reply, page_reply
from e2e.devgateway.plugins.response_plugins import ANY_ANSWER, CHANGES, PREFLIGHT
from e2e.devgateway.references import References
from e2e.devgateway.schemas.plugin_names import PLUGINS
from e2e.devgateway.store import Records

Body = dict[str, Any]
log = logging.getLogger(__name__)

HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
ALL_ACTS = {**ACTS, **AUTH_ACTS, **PREFLIGHT}
BALANCER_LIMIT = 4096
CLOSE = 444
"""Status with which nginx closes a connection without a response."""


def no_route() -> Outgoing:
    return json_reply(404, {"error_msg": "404 Route Not Found"})


class Proxy:
    """Handles the requests of the proxy listeners."""

    def __init__(self, store: Records, references: References, router: Router, *, https_port: int) -> None:
        self._store = store
        self._router = router
        self._runtime = Runtime(store, references, https_port)
        self._pool = Pool()
        self._balancers: dict[str, tuple[Body, Balancer]] = {}
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}
        self._ignored: set[str] = set()

    async def close(self) -> None:
        self._pool.close()

    async def handle(self, request: Request, connection: Connection) -> None:
        """Handle one request."""
        if not request.target.startswith("/"):
            await _send(page_reply(400), request, connection)
            return
        context = Context(request)
        chosen: list[tuple[str, Body]] = []
        try:
            outgoing = await self._answer(context, chosen)
            if isinstance(outgoing, Answer):
                await _tunnel(outgoing, connection)
                return
            for name, conf in chosen:
                if name in CHANGES:
                    await CHANGES[name](conf, context, outgoing)
        except Exception:
            log.exception("request %s %s failed", request.method, request.target)
            outgoing = page_reply(500)
        outgoing.headers.extend(context.response_headers)
        await _send(outgoing, request, connection)

    async def _answer(self, context: Context, chosen: list[tuple[str, Body]]) -> Outgoing | Answer:
        """Return the response; `chosen` collects the plugins whose response phase is to run."""
        for rule in list(self._store.kind("global_rules").values()):
            if (reply := await self._run(rule.value.get("plugins", {}), context, chosen)) is not None:
                return reply
        route = self._router.match(context)
        if route is None:
            return no_route()
        context.route, context.route_id = route.value, route.name
        plugins = dict(route.value.get("plugins", {}))
        if "plugin_config_id" in route.value:
            config = self._store.kind("plugin_configs").get(str(route.value["plugin_config_id"]))
            if config is None:
                return page_reply(503)
            plugins = {**config.value.get("plugins", {}), **plugins}
        service: Body = {}
        if "service_id" in route.value:
            context.service_id = str(route.value["service_id"])
            record = self._store.kind("services").get(context.service_id)
            if record is None:
                return page_reply(404)
            service = record.value
            plugins = {**service.get("plugins", {}), **plugins}
        if (reply := await self._run(plugins, context, chosen)) is not None:
            return reply
        return await self._forward(context, service)

    async def _run(self, plugins: Body, context: Context, chosen: list[tuple[str, Body]]) -> Outgoing | None:
        """Run the request phase of a set of plugins by priority."""
        done: set[str] = set()
        ordered = sorted(plugins.items(), key=_priority)
        for place, (name, conf) in enumerate(ordered):
            if self._skipped(name, conf, context):
                continue
            chosen.append((name, conf))
            if (reply := await self._act(name, conf, context)) is not None:
                later = (each for each in ordered[place + 1 :] if each[0] in ANY_ANSWER)
                chosen += [each for each in later if not self._skipped(*each, context)]
                return reply
            done.add(name)
        if context.consumer and done & AUTH_ACTS.keys():
            extra = {n: c for n, c in self._consumer_plugins(context.consumer).items() if n not in AUTH_ACTS}
            return await self._run(extra, context, chosen)
        return None

    def _consumer_plugins(self, consumer: Body) -> Body:
        group = self._store.kind("consumer_groups").get(str(consumer.get("group_id")))
        inherited = group.value.get("plugins", {}) if group else {}
        return {**inherited, **consumer.get("plugins", {})}

    def _skipped(self, name: str, conf: Body, context: Context) -> bool:
        meta = conf.get("_meta", {})
        if meta.get("disable"):
            return True
        return bool(meta.get("filter")) and not compile_rules(meta["filter"]).holds(context.lookup)

    async def _act(self, name: str, conf: Body, context: Context) -> Outgoing | None:
        act = ALL_ACTS.get(name)
        if act is not None:
            return await act(conf, context, self._runtime)
        if name not in CHANGES and name not in self._ignored:
            self._ignored.add(name)
            log.warning("plugin %s is not implemented here and is ignored", name)
        return None

    # Upstreams.

    def _upstream(self, context: Context, service: Body) -> tuple[Body | None, str, int]:
        """Return (upstream, the key of its balancer, the status if there is no upstream)."""
        if context.upstream is not None:
            return context.upstream, context.upstream_key or f"inline/{id(context.upstream)}", 0
        for owner, key in (
            (context.route or {}, f"routes/{context.route_id}"),
            (service, f"services/{context.service_id}"),
        ):
            if "upstream" in owner and "upstream_id" not in owner:
                return owner["upstream"], key, 0
            if "upstream_id" in owner:
                name = str(owner["upstream_id"])
                record = self._store.kind("upstreams").get(name)
                return (record.value, f"upstreams/{name}", 0) if record else (None, "", 502)
        return None, "", 503

    def _balancer(self, key: str, upstream: Body) -> Balancer:
        known = self._balancers.get(key)
        if known is None or known[0] is not upstream:
            if len(self._balancers) > BALANCER_LIMIT:
                self._balancers.clear()
            known = self._balancers[key] = (upstream, Balancer(upstream, nodes_of(upstream)))
        return known[1]

    async def _forward(self, context: Context, service: Body) -> Outgoing | Answer:
        upstream, key, status = self._upstream(context, service)
        if upstream is None:
            return page_reply(status)
        balancer = self._balancer(key, upstream)
        if not balancer.nodes or not await _resolvable(balancer.nodes):
            return page_reply(503)
        context.websocket = bool((context.route or {}).get("enable_websocket", service.get("enable_websocket")))
        try:
            return await self._attempt(context, upstream, balancer)
        except UnknownAlgorithm:
            return page_reply(500)

    async def _attempt(self, context: Context, upstream: Body, balancer: Balancer) -> Outgoing | Answer:
        """Try nodes until one responds; any status from a node is final."""
        attempts = int(upstream.get("retries", len(balancer.nodes) - 1)) + 1
        tried: list[Node] = []
        statuses: list[str] = []
        while attempts > 0 and (node := balancer.pick(context, tried)) is not None:
            attempts -= 1
            tried.append(node)
            try:
                answer = await self._exchange(context, upstream, node)
            except Unreachable:
                statuses.append("502")
            except TooSlow:
                statuses.append("504")
            else:
                return self._received(context, answer, [*statuses, str(answer.status)], balancer, node)
        status = int(statuses[-1])
        return page_reply(status, ("X-APISIX-Upstream-Status", ", ".join(statuses)))

    async def _exchange(self, context: Context, upstream: Body, node: Node) -> Answer:
        route_timeout = (context.route or {}).get("timeout") or upstream.get("timeout") or {}
        timeouts = Timeouts(**{name: float(route_timeout.get(name, 60)) for name in ("connect", "send", "read")})
        scheme = upstream.get("scheme", "http")
        host = _host_for(context, upstream, node)
        target = context.upstream_target or context.request.target
        secure = scheme in ("https", "grpcs")
        return await self._pool.exchange(
            node,
            f"{context.method} {target} HTTP/1.1",
            _headers_for(context, host),
            context.request.body,
            timeouts=timeouts,
            tls=self._client_context(upstream.get("tls") or {}) if secure else None,
            server_name=host.partition(":")[0] if secure else "",
        )

    def _client_context(self, tls: Body) -> ssl.SSLContext:
        cert, key = tls.get("client_cert", ""), tls.get("client_key", "")
        if "client_cert_id" in tls:
            record = self._store.kind("ssls").get(str(tls["client_cert_id"]))
            cert, key = (record.value["cert"], record.value["key"]) if record else ("", "")
        context = self._contexts.get((cert, key))
        if context is None:
            context = self._contexts[cert, key] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False  # as in the gateway: the upstream's certificate is not verified
            context.verify_mode = ssl.CERT_NONE
            if cert:
                load_pair(context, cert, plain_key(key) or "")
        return context

    def _received(
        self, context: Context, answer: Answer, statuses: list[str], balancer: Balancer, node: Node
    ) -> Outgoing | Answer:
        if answer.status == 101 and context.websocket:
            return answer
        headers = [pair for pair in answer.head.headers if pair[0].lower() not in HOP_BY_HOP | {"server"}]
        headers.append(SERVER)
        if answer.status >= 500:
            headers.append(("X-APISIX-Upstream-Status", ", ".join(statuses)))
        if not answer.has_body:
            answer.pool.put_back(answer)
            return Outgoing(answer.status, headers)
        balancer.begin(node)
        return Outgoing(answer.status, headers, _counted(answer, balancer, node))


async def _counted(answer: Answer, balancer: Balancer, node: Node) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.body():
            yield piece
    finally:
        balancer.end(node)


_ACCESS = frozenset(
    ("ip-restriction", "consumer-restriction", "traffic-split", "limit-conn", "limit-count", "limit-req", "workflow")
)
"""Plugins of the phase access, which run after every plugin of the phase rewrite."""


def _priority(item: tuple[str, Body]) -> tuple[bool, int]:
    name, conf = item
    default = PLUGINS[name].priority if name in PLUGINS else 0
    return name in _ACCESS, -int(conf.get("_meta", {}).get("priority", default))


async def _resolvable(nodes: list[Node]) -> bool:
    """Return whether any node has an address; numeric hosts are not resolved."""
    for node in nodes:
        host = node.host.strip("[]")
        if host.replace(".", "").isdigit() or ":" in host:
            return True
        with contextlib.suppress(socket.gaierror, UnicodeError):
            await asyncio.get_running_loop().getaddrinfo(host, node.port)
            return True
    return False


def _host_for(context: Context, upstream: Body, node: Node) -> str:
    if context.upstream_host is not None:
        return context.upstream_host
    match upstream.get("pass_host", "pass"):
        case "node":
            default = DEFAULT_PORTS.get(upstream.get("scheme", "http"))
            return node.host if node.port == default else f"{node.host}:{node.port}"
        case "rewrite":
            return str(upstream["upstream_host"])
        case _:
            return context.host_header


def _headers_for(context: Context, host: str) -> Headers:
    upgrade = context.websocket and context.request.get("upgrade") is not None
    dropped = HOP_BY_HOP | {"host", "content-length", "x-real-ip", "x-forwarded-for", "expect"}
    headers = [("Host", host)]
    headers.append(("X-Real-IP", context.remote_addr))
    forwarded = context.header("x-forwarded-for")
    headers.append(("X-Forwarded-For", f"{forwarded}, {context.remote_addr}" if forwarded else context.remote_addr))
    headers.extend(pair for pair in context.headers if pair[0].lower() not in dropped)
    if context.request.body or context.request.get("content-length") is not None:
        headers.append(("Content-Length", str(len(context.request.body))))
    if upgrade:
        headers += [("Upgrade", context.request.get("upgrade") or ""), ("Connection", "Upgrade")]
    return headers


async def _send(outgoing: Outgoing, request: Request, connection: Connection) -> None:
    if outgoing.status == CLOSE:
        connection.abort()
        return
    head_only = request.method == "HEAD"
    if isinstance(outgoing.body, bytes):
        if outgoing.body:
            outgoing.remove("content-length")
        await connection.respond(outgoing.status, outgoing.headers, outgoing.body, head_only=head_only)
        return
    try:
        await connection.stream(outgoing.status, outgoing.headers, outgoing.body)
    except BadMessage:
        connection.abort()  # the node closed the connection early: abort the response too


async def _tunnel(answer: Answer, connection: Connection) -> None:
    """Forward bytes in both directions after an upgrade until one side closes."""
    connection.open = False
    link = answer.link
    headers = "".join(f"{name}: {value}\r\n" for name, value in answer.head.headers)
    connection.writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{headers}\r\n".encode("latin-1"))
    ways = {
        asyncio.create_task(_copy(connection.reader, link.writer), name="devgateway.tunnel.up"),
        asyncio.create_task(_copy(link.reader, connection.writer), name="devgateway.tunnel.down"),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        link.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
