"""The function that sends a copy of each request to another address (mirror-target)."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.destinations import LEADS_ELSEWHERE
from translation.nginx.functions.own_requests import CLIENT, MOST_OF_BODY
from translation.nginx.functions.raw_headers import RAW_HEADERS

MOST = 256
MOST_BYTES = 64 * 1024 * 1024
"""Copies that a worker of a gateway sends at the same time, and the sum of their bodies."""

MIRROR = f"""local core = require("apisix.core")
{CLIENT}local DROPPED = {{["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true,
    ["keep-alive"] = true, ["te"] = true, ["transfer-encoding"] = true, ["upgrade"] = true}}
{RAW_HEADERS}local function sent()
    local raw, headers, known = raw_headers(), {{}}, {{}}
    for _, each in ipairs(raw or {{}}) do
        local name, text = each[1], each[2]
        local key = known[name:lower()] or name
        local before = headers[key]
        known[name:lower()] = key
        if type(before) == "table" then
            table.insert(before, text)
        else
            headers[key] = before and {{before, text}} or text
        end
    end
    if not raw then headers = ngx.req.get_headers(0, true) end
    for name in pairs(headers) do
        if DROPPED[name:lower()] then headers[name] = nil end
    end
    return headers
end
local function body_of()
    ngx.req.read_body()
    local body, name = ngx.req.get_body_data(), ngx.req.get_body_file()
    local file = not body and name and io.open(name, "rb")
    if file then
        body = file:read("*a")
        file:close()
    end
    return body
end
{LEADS_ELSEWHERE}
local function reserved(bytes)
    local copies = package.loaded["ingress_nginx.copies"] or {{count = 0, bytes = 0}}
    package.loaded["ingress_nginx.copies"] = copies
    if copies.count >= {MOST} or copies.bytes + bytes > {MOST_BYTES} then return nil end
    copies.count, copies.bytes = copies.count + 1, copies.bytes + bytes
    return function() copies.count, copies.bytes = copies.count - 1, copies.bytes - bytes end
end
local function send(uri, base, request)
    local client = new_client({MOST_OF_BODY})
    if leads_elsewhere(client, uri, base) then
        core.log.error("mirror-target: the request changes the destination of its copy: no copy is sent")
        return
    end
    client:set_timeouts(5000, 60000, 60000)
    local answer, err = client:request_uri(uri, request)
    if not answer then core.log.warn("mirror-target: ", err) end
end
local function copy(premature, release, ...)
    local ok, err = true, nil
    if not premature then ok, err = pcall(send, ...) end
    release()
    if not ok then core.log.error("mirror-target: ", err) end
end
return function(conf, ctx)
    if ctx.ingress_nginx_refused then return end
    local want = conf.{FIELD}.mirror
    local uri, headers = core.utils.resolve_var(want.uri, ctx.var), sent()
    if want.with_query and ctx.var.args then uri = uri .. "?" .. ctx.var.args end
    headers["Host"], headers["Connection"] = want.host, "close"
    local body = want.with_body and body_of() or nil
    local release = reserved(#(body or ""))
    if not release then return core.log.warn("mirror-target: too many copies are being sent: this one is not") end
    local request = {{method = ctx.var.request_method, headers = headers, body = body, version = 1.0,
        keepalive = false, ssl_verify = false}}
    if not ngx.timer.at(0, copy, release, uri, want.base, request) then release() end
end
"""
"""Sends a copy of the request as the client sent it, concurrently with the request; the response is discarded.

A client need not wait for a copy, so that a slow target would let a few clients take all connections and the memory
of a worker: copies beyond `MOST` or `MOST_BYTES` are not sent.
"""
