"""Functions of a route: they run in the gateway's own plugins serverless-pre-function and serverless-post-function.

These plugins accept an additional field in their configuration, which contains the values for the functions. Each
plugin runs in one phase: one before the request to the backend, the other after its response. A function may also send
the request itself; then the other plugin runs just before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject

PLUGINS = ("serverless-pre-function", "serverless-post-function")

FIELD = "ingress_nginx"
"""The field of the plugin's configuration that the functions read."""

PASS = """return function(conf, ctx)
    local answer = ctx.ingress_nginx_answer
    if not answer then return end
    ngx.send_headers()
    if answer.has_body and answer.body_reader and ctx.var.request_method ~= "HEAD" then
        local is_framed = answer.headers["Content-Length"] or answer.headers["Transfer-Encoding"]
        repeat
            local chunk, err = answer.body_reader(65536)
            local is_sent = not chunk or ngx.print(chunk) and ngx.flush(true)
            if not is_sent or err and is_framed then
                answer.client:close()
                return ngx.exit(ngx.ERROR)
            end
        until not chunk
    end
    answer.client:set_keepalive()
    ngx.exit(ngx.HTTP_OK)
end
"""
"""Forwards the response that a function has received from a backend, until the client closes its connection.

nginx keeps each chunk that it cannot send, and reads the list of them for every further one.
"""

_AFTER_LIMITS = 1000
"""The priority of functions that run before the request to the backend: requests are counted before they are
checked."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, with the values that it reads.

    Attributes:
        text: Lua.
        values: By name; names differ between the functions of a route.
        late: Whether it runs after the backend has responded.
        sends_request: Whether it sends the request to the backend; the late ones run after it.
    """

    text: str
    values: JsonObject
    late: bool = False
    sends_request: bool = False


def attached(functions: Sequence[Function]) -> dict[str, JsonObject]:
    """Return the plugins that run functions, in their order."""
    plugins: dict[str, JsonObject] = {}
    sending = [function for function in functions if function.sends_request]
    early = [function for function in functions if not function.late and not function.sends_request]
    late = [function for function in functions if function.late]
    if early:
        meta = {"_meta": {"priority": _AFTER_LIMITS}}
        plugins["serverless-pre-function"] = _plugin("access", early) | meta
    if sending:
        plugins["serverless-post-function"] = _plugin("before_proxy", [*sending, *late, Function(PASS, {}, late=True)])
    elif late:
        plugins["serverless-post-function"] = _plugin("header_filter", late)
    return plugins


def _plugin(phase: str, functions: Sequence[Function]) -> JsonObject:
    values: JsonObject = {}
    for function in functions:
        values |= function.values
    return {"phase": phase, "functions": [function.text for function in functions], FIELD: values}
