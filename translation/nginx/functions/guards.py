"""The functions that guard a path: they check passwords, or send a request to an authentication service."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.destinations import LEADS_ELSEWHERE
from translation.nginx.functions.own_requests import MOST_OF_BODY, OWN_REQUESTS
from translation.nginx.functions.shared_data import SHARED_DATA

_PASSWORDS = r"""
local ffi = require("ffi")
pcall(ffi.cdef, "char *crypt(const char *key, const char *salt);")
local B64 = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
local function apr1(password, salt)
    local final = ngx.md5_bin(password .. salt .. password)
    local text = password .. "$apr1$" .. salt
    local left = #password
    while left > 0 do
        text = text .. final:sub(1, math.min(16, left))
        left = left - 16
    end
    left = #password
    while left > 0 do
        text = text .. (left % 2 == 1 and "\0" or password:sub(1, 1))
        left = math.floor(left / 2)
    end
    local digest = ngx.md5_bin(text)
    for i = 0, 999 do
        local part = i % 2 == 1 and password or digest
        if i % 3 ~= 0 then part = part .. salt end
        if i % 7 ~= 0 then part = part .. password end
        digest = ngx.md5_bin(part .. (i % 2 == 1 and digest or password))
    end
    local out = {}
    local function to64(value, count)
        for _ = 1, count do
            local place = value % 64
            out[#out + 1] = B64:sub(place + 1, place + 1)
            value = math.floor(value / 64)
        end
    end
    local b = {digest:byte(1, 16)}
    for _, t in ipairs({{1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 16}, {5, 11, 6}}) do
        to64(b[t[1]] * 65536 + b[t[2]] * 256 + b[t[3]], 4)
    end
    to64(b[12], 2)
    return "$apr1$" .. salt .. "$" .. table.concat(out)
end
local function matches(hash, password)
    if hash:sub(1, 7) == "{PLAIN}" then
        return hash:sub(8) == password
    elseif hash:sub(1, 5) == "{SHA}" then
        return hash:sub(6) == ngx.encode_base64(ngx.sha1_bin(password))
    elseif hash:sub(1, 6) == "{SSHA}" then
        local raw = ngx.decode_base64(hash:sub(7))
        return raw ~= nil and #raw > 20 and ngx.sha1_bin(password .. raw:sub(21)) == raw:sub(1, 20)
    elseif hash:sub(1, 6) == "$apr1$" then
        return apr1(password, (hash:match("^%$apr1%$([^$]*)") or ""):sub(1, 8)) == hash
    end
    local ok, found = pcall(function() return ffi.C.crypt(password, hash) end)
    return ok and found ~= nil and #hash > 2 and ffi.string(found) == hash
end
local function basic(want, ctx)
    local data = shared_data(want.users)
    if not (data and data.users) then
        core.log.error("auth-secret: the gateway has no passwords")
        return 503
    end
    local text = core.request.header(ctx, "Authorization")
    local encoded = type(text) == "string" and text:match("^[Bb][Aa][Ss][Ii][Cc] +(%S+)%s*$")
    local plain = encoded and ngx.decode_base64(encoded)
    local user, password = (plain or ""):match("^([^:]*):(.*)$")
    local hash = user and data.users[user]
    if hash and matches(hash, password) then
        return nil
    end
    ngx.header["WWW-Authenticate"] = "Basic realm=\"" .. want.realm .. "\""
    return 401
end
"""

MOST_CACHED = 2**13
"""Bytes of the headers of a response that a worker keeps: it keeps 4,096 responses, and clients choose their keys."""

_EXTERNAL = r"""
local DROPPED = {"x-forwarded-scheme", "x-scheme", "x-forwarded-proto", "content-length", "transfer-encoding", "expect",
    "connection", "upgrade", "keep-alive", "te", "host", "x-forwarded-for", "proxy", "x-original-forwarded-for",
    "x-original-forwarded-host"}
local function value(text, ctx, known)
    return (core.utils.resolve_var(text, known and setmetatable(known, {__index = ctx.var}) or ctx.var))
end
local function cached(want, ctx)
    local store = package.loaded["ingress_nginx.answers"]
    if not store then
        store = require("resty.lrucache").new(4096)
        package.loaded["ingress_nginx.answers"] = store
    end
    return store, want.cache.id .. " " .. ngx.md5(value(want.cache.key, ctx))
end
local function size_of(headers)
    local size = 0
    for name, given in pairs(headers) do
        for _, text in ipairs(type(given) == "table" and given or {given}) do size = size + #name + #text end
    end
    return size
end
local function keep(want, ctx, answer)
    local seconds = want.cache.valid[tostring(answer.status)]
    local headers = answer.headers
    if seconds and size_of(headers) <= MOST_CACHED and not (headers["Set-Cookie"] or headers["Vary"]
        or headers["Cache-Control"] or headers["Expires"] or headers["X-Accel-Expires"]) then
        local store, key = cached(want, ctx)
        store:set(key, {status = answer.status, headers = headers, last = ngx.time() + seconds}, seconds + 1)
    end
end
local function asked(want, ctx)
    if want.cache then
        local store, key = cached(want, ctx)
        local found = store:get(key)
        if found and found.last >= ngx.time() then return found end
    end
    local headers = {}
    for name, text in pairs(ngx.req.get_headers(0)) do
        headers[name] = text
    end
    for _, name in ipairs(DROPPED) do
        headers[name] = nil
    end
    for _, name in ipairs({"host", "port"}) do
        local sent = ctx.var["original_x_forwarded_" .. name]
        headers["x-forwarded-" .. name] = sent ~= "" and sent or nil
    end
    headers["forwarded"] = headers["forwarded"] ~= "" and headers["forwarded"] or nil
    headers["x-forwarded-for"] = ctx.var.remote_addr
    for name, text in pairs(want.headers) do
        headers[name:lower()] = value(text, ctx)
    end
    local client = new_client(MOST_OF_BODY)
    client:set_timeouts(5000, 60000, 60000)
    local uri, base = value(want.uri, ctx), value(want.base, ctx)
    if leads_elsewhere(client, uri, base) then return nil, "the request changes the destination" end
    headers["host"] = base:match("^https?://(.+):%d+$") or base:match("^https?://(.+)$")
    local added = want.added and shared_data(want.added) or {}
    if want.added and not added.headers then return nil, "the gateway does not have auth-proxy-set-headers" end
    local own = {["host"] = true, ["x-forwarded-for"] = true}
    for name in pairs(want.headers) do own[name:lower()] = true end
    for name, text in pairs(added.headers or {}) do
        local key = name:lower()
        headers[key] = own[key] and {headers[key], value(text, ctx)} or value(text, ctx)
    end
    headers["Host"], headers["host"] = headers["host"], nil
    headers["Content-Length"] = {}
    local answer, err = client:request_uri(uri, {
        method = want.method, headers = headers, ssl_verify = false, keepalive = true,
    })
    if answer and want.cache then keep(want, ctx, answer) end
    return answer, err
end
local function sign_in(want, ctx, cookies)
    ngx.header["Set-Cookie"] = cookies
    local escaped = ngx.escape_uri(ctx.var.real_request_uri)
    local where = value(want.signin, ctx, {escaped_request_uri = escaped})
    if want.parameter and not where:find(want.parameter .. "=", 1, true) then
        local address = ctx.var.scheme .. "://" .. (ctx.var.http_host or "") .. escaped
        where = where .. (where:find("?", 1, true) and "&" or "?") .. want.parameter .. "=" .. address
    end
    ngx.header["Location"] = where
    ctx.ingress_nginx_signin = true
    return 302
end
local function external(want, ctx)
    local held = reserved(ctx, want.namespace)
    if not held then return 503 end
    local answer, err = asked(want, ctx)
    release(held)
    if not answer then
        core.log.error("auth-url: ", err)
        return 500
    end
    local cookies = answer.headers["Set-Cookie"]
    if type(cookies) == "table" then
        cookies = table.concat(cookies, ", ")
    end
    if answer.status == 401 and want.signin then
        return sign_in(want, ctx, cookies)
    elseif answer.status == 401 or answer.status == 403 then
        ngx.header["WWW-Authenticate"] = answer.status == 401 and answer.headers["WWW-Authenticate"] or nil
        return answer.status
    elseif answer.status < 200 or answer.status >= 300 then
        core.log.error("auth-url: unexpected status ", answer.status)
        return 500
    end
    for _, name in ipairs(want.response_headers) do
        local text = answer.headers[name]
        core.request.set_header(ctx, name, type(text) == "table" and table.concat(text, ", ") or text)
    end
    ctx.ingress_nginx_cookies = cookies
end
"""

GUARD = f"""local core = require("apisix.core")
{SHARED_DATA}{_PASSWORDS}{LEADS_ELSEWHERE}{OWN_REQUESTS}local MOST_OF_BODY = {MOST_OF_BODY}
local MOST_CACHED = {MOST_CACHED}{_EXTERNAL}
local function refused(want, ctx, status)
    if not (want.shown and want.shown[tostring(status)]) then return status end
    ctx.ingress_nginx_refused = status
end
return function(conf, ctx)
    local want = conf.{FIELD}
    if ctx.ingress_nginx_refused then return end
    local status = want.basic and basic(want.basic, ctx)
    local either = want.any and want.basic and want.external
    if status == 401 and not either and want.external and want.external.signin then
        return sign_in(want.external, ctx)
    end
    if status and not (either and status == 401) then return refused(want, ctx, status) end
    if want.external and (status or not either) then
        local other = external(want.external, ctx)
        if other then return refused(want, ctx, other == 403 and status or other) end
        if status then ngx.header["WWW-Authenticate"] = nil end
    end
    if want.basic or want.waived then
        local sets = want.external and want.external.sets_authorization
        if not sets then core.request.set_header(ctx, "Authorization", nil) end
    end
end
"""
"""Checks a request; returns a status if it is rejected, or leaves that to the function that shows error pages."""

COOKIES = f"""local LISTED = {{[200] = true, [201] = true, [204] = true, [206] = true, [301] = true, [302] = true,
    [303] = true, [304] = true, [307] = true, [308] = true}}
return function(conf, ctx)
    if ctx.ingress_nginx_signin then ngx.header["Strict-Transport-Security"] = nil end
    local cookies = ctx.ingress_nginx_cookies
    if cookies and (conf.{FIELD}.always or LISTED[ngx.status]) then
        local before = ngx.header["Set-Cookie"]
        local all = type(before) == "table" and {{unpack(before)}} or {{before}}
        all[#all + 1] = cookies
        ngx.header["Set-Cookie"] = all
    end
end
"""
"""Passes the cookies of the authentication service on to the client; the redirect to sign in has no HSTS header."""
