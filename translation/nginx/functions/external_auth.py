"""The function of the filter ExternalAuth of an HTTPRoute: asks a service whether a request is permitted.

The plugin forward-auth does not send the path and the method of the request as such, accepts every status below 300,
and copies listed headers only. The request goes to a path of the gateway itself, whose route has the upstream of the
service.
"""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.own_requests import OWN_REQUESTS

MARK = "x-apisix-auth"
"""Header of the requests to the service: the gateway must not ask about them in turn, which would never end.

The response has it too, with the gateway's path for these requests: that of another route permits nothing.
"""

MOST_BYTES = 64 * 2**10
"""Bytes of a response of the service that a client may get; of a longer one it gets the status and the headers."""

FRAMING = frozenset({
    "authority", "connection", "content-length", "content-range", "date", "expect", "host", "keep-alive",
    "proxy-connection", "server", "te", "trailer", "transfer-encoding", "upgrade", "x-real-ip"
})  # fmt: skip
"""Headers of a connection or of one message, which are not passed on. A gateway trusts its own X-Real-IP."""

ASK = f"""local core = require("apisix.core")
{OWN_REQUESTS}local KEPT = {{{", ".join(f'["{name}"] = true' for name in sorted(FRAMING))}}}
local BODY = {{["content-type"] = true, ["content-encoding"] = true}}
local function passed_on(name)
    return not KEPT[name] and name:sub(1, 9) ~= "x-apisix-"
end
local function content(client, answer)
    local parts, size = {{}}, 0
    while answer.has_body do
        local chunk, err = answer.body_reader(8192)
        if err then return nil end
        if not chunk then break end
        size = size + #chunk
        if size > {MOST_BYTES} then return nil end
        parts[#parts + 1] = chunk
    end
    client:set_keepalive()
    return table.concat(parts)
end
local function asked(want, ctx, body)
    local uri = ctx.var.real_request_uri
    local all, headers = ngx.req.get_headers(0), {{["Host"] = ctx.var.http_host, ["{MARK}"] = "1"}}
    for _, name in ipairs(want.headers) do headers[name] = all[name] end
    if headers["x-forwarded-for"] then headers["x-forwarded-for"] = ngx.var.proxy_add_x_forwarded_for end
    headers["Content-Length"] = tostring(#(body or ""))
    local client = new_client()
    client:set_timeouts(5000, 60000, 60000)
    local scheme, host, port = unpack(client:parse_uri(want.base) or {{}})
    local own = want.uri:sub(#want.base + 1)
    local is_connected, err = client:connect({{scheme = scheme, host = host, port = port, ssl_verify = false}})
    if not is_connected then return nil, err end
    local mark = uri:find("?", 1, true)
    local answer, failure = client:request({{
        method = ctx.var.request_method, headers = headers, body = body,
        path = own .. uri:sub(1, mark and mark - 1), query = mark and uri:sub(mark + 1),
    }})
    if answer and answer.headers["{MARK}"] ~= own then
        client:close()
        return nil, "the gateway has no route to the service"
    end
    return answer, failure, client
end
local function refused(answer, text)
    if answer.status < 300 then return 403 end
    for name, value in pairs(answer.headers) do
        if passed_on(name:lower()) and (text or not BODY[name:lower()]) then ngx.header[name] = value end
    end
    return answer.status, text
end
local function permitted(want, ctx, answer)
    local found = {{}}
    for name, value in pairs(answer.headers) do
        found[name:lower()] = type(value) == "table" and table.concat(value, ", ") or value
    end
    if #want.copied > 0 then
        for _, name in ipairs(want.copied) do core.request.set_header(ctx, name, found[name]) end
        return
    end
    for name, value in pairs(found) do
        if passed_on(name) and not BODY[name] then core.request.set_header(ctx, name, value) end
    end
end
return function(conf, ctx)
    local want = conf.{FIELD}.external
    if ctx.var.real_request_uri:byte() ~= 47 or core.request.header(ctx, "{MARK}") then return 403 end
    local body
    if want.most then
        local text, failure = core.request.get_body(want.most, ctx)
        if failure then return 413 end
        body = text
    end
    local held = reserved(ctx, want.namespace)
    if not held then return 503 end
    local answer, err, client = asked(want, ctx, body)
    local text = answer and content(client, answer)
    if answer and not text then client:close() end
    release(held)
    if not answer then
        core.log.error("external authorization: ", err)
        return 403
    end
    if answer.status ~= 200 then return refused(answer, text) end
    permitted(want, ctx, answer)
end
"""
"""Asks the service; returns its response if it does not permit the request, 403 if it does not respond."""
