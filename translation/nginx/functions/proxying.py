"""The functions that send requests to backends in place of the gateway, which cannot inspect a response first."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.own_requests import OWN_REQUESTS

EMPTY = f"""local upstreams = require("apisix.upstream")
return function(conf, ctx)
    local errors = conf.{FIELD}.errors
    if ctx.ingress_nginx_refused then return end
    local found = upstreams.get_by_id(ctx.matched_route.value.upstream_id)
    if not found or #(found.nodes or {{}}) > 0 then return end
    local other = errors.upstream and upstreams.get_by_id(errors.upstream)
    local shown = other and #(other.nodes or {{}}) > 0
    ctx.ingress_nginx_page = true
    if not shown then return errors["without"] end
    ctx.ingress_nginx_refused, ctx.upstream_id = 503, errors.upstream
end
"""
"""Shows the error page of 503 if the backend has no endpoints; the gateway does not run `SEND_REQUEST` then."""

DEFAULT = f"""local core = require("apisix.core")
local upstreams = require("apisix.upstream")
local function nodes_of(id)
    local found = upstreams.get_by_id(id)
    return found and found.nodes or {{}}
end
return function(conf, ctx)
    local want, own = conf.{FIELD}.default, nodes_of(ctx.matched_route.value.upstream_id)[1]
    for _, node in ipairs(own and nodes_of(want.upstream) or {{}}) do
        if node.host == own.host and node.port == own.port then
            for name, text in pairs(want.headers) do core.request.set_header(ctx, name, text) end
            core.request.set_header(ctx, "X-Code", "503")
            core.request.set_header(ctx, "X-Format", ctx.var.http_accept)
            return
        end
    end
end
"""
"""Adds headers to a request for the default backend: the upstream of the route has its nodes, as it has none itself."""

SEND_REQUEST = f"""local core = require("apisix.core")
local upstreams = require("apisix.upstream")
local balancer = require("apisix.balancer")
local DROPPED = {{["connection"] = true, ["keep-alive"] = true, ["host"] = true, ["transfer-encoding"] = true,
    ["content-length"] = true, ["te"] = true, ["upgrade"] = true, ["expect"] = true, ["x-real-ip"] = true,
    ["x-forwarded-for"] = true}}
local OWN = {{["x-forwarded-host"] = "host", ["x-forwarded-port"] = "port", ["x-forwarded-proto"] = "proto",
    ["x-forwarded-scheme"] = "", ["x-scheme"] = "", ["x-original-forwarded-for"] = "",
    ["x-original-forwarded-host"] = "", ["x-original-uri"] = ""}}
local ABOUT = {{["x-code"] = true, ["x-format"] = true, ["x-namespace"] = true, ["x-ingress-name"] = true,
    ["x-service-name"] = true, ["x-service-port"] = true}}
{OWN_REQUESTS}local function nodes_of(id)
    local found = id and upstreams.get_by_id(id)
    return found and found.nodes or {{}}
end
local function body_of(want)
    local length = tonumber(ngx.var.http_content_length)
    if want.limit and length and length > want.limit then return nil, 413 end
    ngx.req.read_body()
    local data, name = ngx.req.get_body_data(), ngx.req.get_body_file()
    local file = not data and name and io.open(name, "rb")
    local size = data and #data or file and file:seek("end")
    if file then file:close() end
    if size and want.limit and size > want.limit then return nil, 413 end
    return size and {{size = size, data = data, name = name}}
end
local function content_of(body)
    if not body or body.data then return body and body.data end
    local file = io.open(body.name, "rb")
    return function()
        local chunk = file and file:read(65536)
        if not chunk and file then file = file:close() and nil end
        return chunk
    end
end
local function is_too_big(answer, limit)
    local length = 17 + #(answer.reason or "")  -- the status line and the empty line
    for name, given in pairs(answer.headers) do
        for _, text in ipairs(type(given) == "table" and given or {{given}}) do
            length = length + #name + #text + 4
        end
    end
    return length > limit
end
local function send(ctx, server, scheme, timeout, request)
    local client = new_client()
    -- A request that is always too late should still reach the backend before its connection is closed.
    local read = timeout.late and 50 or timeout.read * 1000
    client:set_timeouts(timeout.connect * 1000, timeout.send * 1000, read)
    local sent, err = client:connect({{scheme = scheme, host = server.host, port = server.port, ssl_verify = false,
        ssl_server_name = scheme == "https" and ctx.var.host or nil}})
    local answer
    if sent then answer, err = client:request(request) end
    if not answer then
        core.log.error("backend ", server.host, ":", server.port, ": ", err)
        return nil, tostring(err):find("timeout", 1, true) and 504 or 502, sent
    end
    if timeout.late or request.head and is_too_big(answer, request.head) then
        client:close()
        return nil, timeout.late and 504 or 502, true, not timeout.late
    end
    answer.client = client
    return answer, answer.status, true
end
local function target_of(want, ctx)
    local path, query = ctx.var.upstream_uri:match("^([^?]*)%??(.*)$")
    local groups = ctx.proxy_rewrite_regex_uri_captures or {{}}
    if want.bare and not groups[want.bare] then path = path:sub(2) end
    return path, query ~= "" and query or nil
end
local function of_backend(want, ctx, body)
    local headers = {{}}
    for name, text in pairs(ngx.req.get_headers(0, true)) do
        if not DROPPED[name:lower()] and text ~= "" then headers[name] = text end
    end
    headers["Host"], headers["X-Real-IP"] = ctx.var.upstream_host, ctx.var.remote_addr
    headers["X-Forwarded-For"] = ngx.var.proxy_add_x_forwarded_for
    for _, node in ipairs(nodes_of(want.errors and want.errors.upstream)) do
        if node.host == ctx.picked_server.host and node.port == ctx.picked_server.port then
            for name in pairs(headers) do if ABOUT[name:lower()] then headers[name] = nil end end
            for name, text in pairs(want.errors.headers) do headers[name] = text end
            headers["X-Code"], headers["X-Format"] = "503", ctx.var.http_accept
            local id = headers["X-Request-ID"]
            if id then headers["X-Request-ID"] = {{id, id}} end
        end
    end
    if body then headers["Content-Length"] = body.size end
    local path, query = target_of(want, ctx)
    return {{method = ctx.var.request_method, path = path, query = query, headers = headers,
        body = content_of(body), version = want.version, head = want.head}}
end
local function of_errors(want, ctx, body, code, early)
    local headers = {{["X-Code"] = tostring(code), ["X-Format"] = ctx.var.http_accept, ["Connection"] = "close",
        ["X-Original-URI"] = ctx.var.real_request_uri, ["Host"] = ctx.var.http_host,
        ["X-Forwarded-For"] = ctx.var.remote_addr}}
    if early then
        headers["Host"] = {{}}
    else
        for name, text in pairs(want.errors.headers) do headers[name] = text end
    end
    for name, text in pairs(ngx.req.get_headers(0, true)) do
        local lower = name:lower()
        local own = OWN[lower]
        if own then text = own ~= "" and ctx.var["original_x_forwarded_" .. own] or "" end
        if not (DROPPED[lower] or ABOUT[lower]) and text ~= "" then headers[name] = text end
    end
    if body then headers["Content-Length"] = body.size end
    return {{method = ctx.var.request_method, path = "/", query = ctx.var.args, headers = headers,
        body = content_of(body), version = 1.0}}
end
local function asked(want, ctx, body)
    local tries, method = want.tries, ctx.var.request_method
    local once = not want.any_method and (method == "POST" or method == "LOCK" or method == "PATCH")
    while true do
        local request = of_backend(want, ctx, body)
        local found, code, sent, final = send(ctx, ctx.picked_server, ctx.upstream_scheme, want.timeout, request)
        tries = tries - 1
        if tries < 1 or final or (once and sent) or not want.again[tostring(found and code or "error")] then
            return found, code
        end
        if found then found.client:close() end
        ctx.balancer_try_count = 0
        ctx.picked_server = balancer.pick_server(ctx.matched_route, ctx) or ctx.picked_server
    end
end
local function listed(want, code, answer)
    return want.errors and want.errors.codes[tostring(code)] and not (answer and want.errors.own_only)
end
local PAGES = {{name = "ingress-nginx-pages"}}
function PAGES.header_filter(want, ctx)
    if not listed(want, ngx.status, true) then return end
    ctx.ingress_nginx_hidden = true
    core.response.clear_header_as_body_modified()
end
function PAGES.body_filter(want, ctx)
    if ctx.ingress_nginx_hidden then ngx.arg[1] = "" end
end
return function(conf, ctx)
    local want = conf.{FIELD}
    local code, answer, body = ctx.ingress_nginx_refused or want.refused, nil, nil
    if ctx.var.http_upgrade and not code then
        core.table.insert(ctx.plugins, PAGES)
        core.table.insert(ctx.plugins, want)
        local length = tonumber(ngx.var.http_content_length) or 0
        return want.limit and (ngx.var.http_transfer_encoding or length > want.limit) and 413 or nil
    end
    if not reserved(ctx, want.namespace) then return 503 end
    if not code and target_of(want, ctx) == "" then code = 500 end
    if not code then
        body, code = body_of(want)
        if not code then answer, code = asked(want, ctx, body) end
    end
    if listed(want, code, answer) then
        local nodes = nodes_of(want.errors.upstream)
        ctx.ingress_nginx_page = true
        if answer then answer.client:close() end
        if #nodes == 0 then return want.errors.without end
        local early = code == 413 and not answer
        answer, code = send(ctx, nodes[math.random(#nodes)], "http", want.timeout,
            of_errors(want, ctx, body, code, early))
    end
    if not answer then return code end
    ngx.status = code
    for name, text in pairs(answer.headers) do
        local lower = name:lower()
        if not DROPPED[lower] and lower ~= "date" and lower ~= "server" then ngx.header[name] = text end
    end
    -- The length of a chunked response is not that of its body: what follows would be the next response.
    local length = not answer.headers["Transfer-Encoding"] and tonumber(answer.headers["Content-Length"])
    ngx.header["Content-Length"] = length or nil
    ctx.ingress_nginx_answer = answer
end
"""
"""Sends the request to the backend and, after a listed error, to the backend for errors, with details as headers.

A request with the header Upgrade is left to the gateway, which removes the body of a listed error: it cannot show the
page.
"""
