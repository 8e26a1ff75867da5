"""The functions that write headers: those about the client behind a front proxy, and those of a backend's response."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.raw_headers import RAW_HEADERS

ADDRESS = """local core = require("apisix.core")
return function(conf, ctx)
    core.request.set_header(ctx, "X-Real-IP", ctx.var.remote_addr)
    core.request.set_header(ctx, "X-Forwarded-For", ctx.var.remote_addr)
end
"""
"""Sets the headers with the address of the client for a gRPC backend."""

CONNECTION = """local core = require("apisix.core")
return function(conf, ctx)
    if ctx.var.http_connection then
        core.request.set_header(ctx, "Connection", ctx.var.http_upgrade and "upgrade" or nil)
    end
end
"""
"""Replaces the header Connection as nginx does: with `enable_websocket`, a gateway passes on that of the client.

A client could list headers in it that the next proxy removes, such as the name of the user or the client's address.
"""

GROUPS = f"""local core = require("apisix.core")
return function(conf, ctx)
    local groups = ctx.proxy_rewrite_regex_uri_captures or {{}}
    local known = setmetatable({{}}, {{__index = function(_, name)
        local number, rest = name:match("^(%d+)(.*)$")
        if not number then return ctx.var[name] end
        return (groups[tonumber(number)] or "") .. rest
    end}})
    for name, text in pairs(conf.{FIELD}.groups) do
        local found = core.utils.resolve_var(text, known)
        core.request.set_header(ctx, name, found ~= "" and found or nil)
    end
end
"""
"""Sets headers that contain groups of the path; variables in the text of a group are not evaluated."""

FORWARDED = f"""local core = require("apisix.core")
return function(conf, ctx)
    local want = conf.{FIELD}.forwarded
    local function sent(name)
        local text = ctx.var["original_x_forwarded_" .. name]
        return text ~= "" and text or nil
    end
    local scheme, port = sent("proto") or ctx.var.scheme, sent("port") or want.port
    local host = (sent("host") or ""):match("^[^,]+")
    for _, name in ipairs({{"X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme"}}) do
        core.request.set_header(ctx, name, scheme)
    end
    core.request.set_header(ctx, "X-Forwarded-Port", port)
    if host then
        core.request.set_header(ctx, "X-Forwarded-Host", host)
        if not want.keeps_host then ctx.var.upstream_host = host end
    end
end
"""
"""Forwards the scheme, host and port of the client's request as reported by a front proxy."""

ANSWERS = f"""local core = require("apisix.core")
local function swapped(text, want, ctx)
    if text:sub(1, #want.from) == want.from then
        return core.utils.resolve_var(want.to, ctx.var) .. text:sub(#want.from + 1)
    end
end
local function located(text, want, ctx)
    local found = swapped(text, want, ctx)
    if found and found:sub(1, 1) == "/" then
        found = ctx.var.scheme .. "://" .. ctx.var.host .. found
    end
    return found or text
end
local function cookie(text, want, ctx)
    return (text:gsub("(;%s*)(%a+)=([^;]*)", function(lead, name, value)
        local kind = name:lower()
        if kind == "path" and want.cookie_path then
            value = swapped(value, want.cookie_path, ctx) or value
        elseif kind == "domain" and want.cookie_domain
            and value:gsub("^%.", ""):lower() == want.cookie_domain.from then
            value = core.utils.resolve_var(want.cookie_domain.to, ctx.var)
        end
        return lead .. name .. "=" .. value
    end))
end
return function(conf, ctx)
    local want, header = conf.{FIELD}, ngx.header
    if not ctx.var.upstream_status and not ctx.ingress_nginx_answer then return end
    if want.redirect then
        local where, start, rest = header["Location"], (header["Refresh"] or ""):match("^(.-[uU][rR][lL]=)(.*)$")
        if where then header["Location"] = located(where, want.redirect, ctx) end
        if start then header["Refresh"] = start .. (swapped(rest, want.redirect, ctx) or rest) end
    end
    local cookies = header["Set-Cookie"]
    if cookies and (want.cookie_path or want.cookie_domain) then
        local all = {{}}
        for place, text in ipairs(type(cookies) == "table" and cookies or {{cookies}}) do
            all[place] = cookie(text, want, ctx)
        end
        header["Set-Cookie"] = all
    end
end
"""
"""Changes the redirects and cookies of a backend, as proxy_redirect, proxy_cookie_path and proxy_cookie_domain do."""

UPSTREAM_HOST = f"""return function(conf, ctx)
    ctx.var.upstream_host = conf.{FIELD}.upstream_host
end
"""
"""Sets the header Host for the backend to a name that proxy-rewrite does not accept."""

UNDERSCORES = """local core = require("apisix.core")
return function(conf, ctx)
    local count = 0
    for name in pairs(ngx.req.get_headers(0, true)) do
        if name:find("_", 1, true) then
            count = count + 1
            if count > 100 then return 431 end
            core.request.set_header(ctx, name, nil)
        end
    end
end
"""
"""Drops headers with an underscore: variables and some backends confuse `X_User` with the trusted header `X-User`.

Each of them takes a search of all headers, so that a request with more than a hundred is rejected.
"""

INVALID = f"""local TOKEN = "^[%w!#$%%&'*+.^_`|~-]+$"
{RAW_HEADERS}return function(conf, ctx)
    local found, count = {{}}, 0
    for _, each in ipairs(raw_headers() or {{}}) do
        local name, text = each[1], each[2]
        if name:find("[^%w_-]") and name:find(TOKEN) then
            count = count + 1
            if count > 100 then return 431 end
            found[name] = found[name] or {{}}
            table.insert(found[name], text)
        end
    end
    for name, texts in pairs(found) do ngx.req.set_header(name, texts) end
end
"""
"""Passes on headers that nginx drops because of characters in their names; there is no raw header in HTTP/2.

As with `UNDERSCORES`, a request with more than a hundred of them is rejected.
"""

MANY = """return function(conf, ctx)
    local _, more = ngx.req.get_headers(100)
    if more then return 431 end
end
"""
"""Rejects requests with more than a hundred headers, of which the plugin `real-ip` does not read the last ones.

Front proxies append the address of the client at the end, so that it would be missing.
"""
