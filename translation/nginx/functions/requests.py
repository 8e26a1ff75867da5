"""The function of nearly every route: headers about the client, the id of the request, buffering, and HSTS.

It replaces several plugins, whose cost is several times that of a route without plugins. It is the `pre_function` of
a plugin: gateways compile such a text once, but the functions of a serverless plugin again for most requests, as they
keep only those of eight routes. The plugin is `client-control`, which runs in one phase, and before plugins that read
or change headers.
"""

from __future__ import annotations

from hashlib import sha256

from translation.nginx.functions.attached import FIELD

HOST = "client-control"
"""The plugin that runs the function."""

PORTS = {"http": "80", "https": "443"}

REMOVED = ("Proxy", "X-Forwarded-For", "HTTP2-Settings")
"""Headers that backends do not get from clients. Without the last one, no backend accepts an upgrade to HTTP/2: a
connection past the guards of its other paths."""

_REMOVAL = "".join(f'    if rawget(sent, "{name.lower()}") then change(ctx, "{name}", nil) end\n' for name in REMOVED)

_BODY = f"""local core = require("apisix.core")
local is_patched, request = pcall(require, "resty.apisix.request")
local function keep(ctx, headers)
    ctx.headers = headers
    if is_patched then request.clear_request_header() end
end
local set_header, change = ngx.req.set_header, core.request.set_header
local PORTS = {{http = "{PORTS["http"]}", https = "{PORTS["https"]}"}}
local function write(headers)
    for name, text in pairs(headers) do ngx.header[name] = text end
end
local RESPONSE = {{name = "{HOST}", header_filter = function(want, ctx)
    if ngx.status >= 500 then ngx.header["X-APISIX-Upstream-Status"] = nil end
    if ctx.ingress_nginx_page then return end
    if want.headers then write(want.headers) end
    local secure = ctx.ingress_nginx_secure
    if secure and not ctx.ingress_nginx_signin then write(secure) end
end}}
local loaded, FUNCTIONS = {{}}, {{}}
local function run_functions(conf, ctx)
    for _, text in ipairs(conf.functions) do
        local run = loaded[text]
        if not run then
            run = loadstring(text)()
            loaded[text] = run
        end
        local code, body = run(conf, ctx)
        if code or body then return code, body end
    end
end
for _, phase in ipairs({{"access", "before_proxy", "header_filter"}}) do
    FUNCTIONS[phase] = {{name = "ingress-nginx", [phase] = run_functions}}
end
local function compile_once(plugins)
    for place = 1, #plugins, 2 do
        local conf = plugins[place + 1]
        if conf.functions and conf.{FIELD} then plugins[place] = FUNCTIONS[conf.phase] end
    end
end
local function follow(plugins, want)
    for place = 1, #plugins, 2 do
        if plugins[place].name == "{HOST}" then
            plugins[place], plugins[place + 1] = RESPONSE, want
            return
        end
    end
end
local function replace(ctx, name, is_sent, text)
    if text and text ~= "" then
        change(ctx, name, text)
    elseif is_sent then
        change(ctx, name, nil)
    end
end
local function forward(client, scheme, sent, ctx)
    local var = ngx.var
    local addresses = rawget(sent, client.addresses) and var["http_" .. client.addresses:gsub("%-", "_")]
    replace(ctx, "X-Original-Forwarded-For", rawget(sent, "x-original-forwarded-for"), addresses)
    replace(ctx, "X-Original-Forwarded-Host", rawget(sent, "x-original-forwarded-host"), var[client.host])
{_REMOVAL}    if rawget(sent, "connection") then
        change(ctx, "Connection", rawget(sent, "upgrade") and "upgrade" or nil)
    end
    local forwarded = var.original_forwarded
    if forwarded and forwarded ~= "" then change(ctx, "Forwarded", forwarded) end
    set_header("X-Forwarded-Scheme", scheme)
    set_header("X-Scheme", scheme)
    set_header("X-Forwarded-Port", PORTS[scheme])
    sent["x-forwarded-scheme"], sent["x-scheme"], sent["x-forwarded-port"] = scheme, scheme, PORTS[scheme]
end
local function identify(sent, ctx)
    local id = rawget(sent, "x-request-id")
    if id and id ~= "" then
        ctx.var.apisix_request_id = ngx.var.http_x_request_id
    else
        id = ngx.var.request_id
        set_header("X-Request-ID", id)
        sent["x-request-id"] = id
    end
end
local function has_known_length(sent, ctx)
    if rawget(sent, "transfer-encoding") then return false end
    local method = ngx.req.get_method()
    return method == "GET" or method == "HEAD" or rawget(sent, "content-length")
        or ctx.var.server_protocol:find("^HTTP/1")
end
local function redirect(want, ctx)
    local target = ctx.var.real_request_uri
    if not want.keeps_slash then target = target:gsub("/$", "", 1) end
    ngx.header["Location"] = "https://" .. ctx.var.host .. target
    return core.response.exit(want.code)
end
local function run(want, ctx)
    local scheme = ngx.var.scheme
    if want.https and scheme == "http" then return redirect(want.https, ctx) end
    local sent = ngx.req.get_headers(0)
    keep(ctx, sent)
    if want.client then forward(want.client, scheme, sent, ctx) end
    if want.id then identify(sent, ctx) end
    keep(ctx, sent)
    if want.uri then ctx.var.upstream_uri = ctx.var.real_request_uri end
    if want.unbuffered and (want.unbuffered == "always" or has_known_length(sent, ctx)) then
        ngx.ctx.disable_proxy_buffering = true
    end
    if want.functions then compile_once(ctx.plugins) end
    if scheme == "https" then ctx.ingress_nginx_secure = want.secure end
    follow(ctx.plugins, want)
end
local function checked(conf, ctx)
    local ran, why = pcall(run, conf.{FIELD}, ctx)
    if not ran then
        core.log.error("headers of ingress-nginx: ", why)
        return core.response.exit(500)
    end
end
"""

_NAME = f"{FIELD}.{sha256(_BODY.encode()).hexdigest()[:12]}"
"""The name under which a worker keeps the function: another text has another name."""

REQUEST = f"""local known = package.loaded["{_NAME}"]
if known then return known end
{_BODY}package.loaded["{_NAME}"] = checked
return checked
"""
"""Prepares a request for the backend; a gateway responds with 500 if it fails.

It reads all headers once, and the gateway keeps them for the plugins that follow. `https` redirects http requests,
before any other plugin reads them. `secure` are headers of https responses. The function then takes the place of its
plugin, which has finished, to write the headers of the response without a further plugin: error pages of other backends
have none of them, and no response has the gateway's header about the status of the backend. It reads what it can
without `ctx.var`, which compares a name with many prefixes first.
"""
