"""The function that limits requests if another backend serves the page for requests beyond the limit."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD

LIMIT = f"""local core = require("apisix.core")
local matchers = setmetatable({{}}, {{__mode = "k"}})
local function is_spared(want, ctx)
    if not want.spared then return false end
    matchers[want] = matchers[want] or core.ip.create_ip_matcher(want.spared)
    return matchers[want] and matchers[want]:match(ctx.var.remote_addr)
end
local function exceeds(kind, want, ctx, ...)
    local limit, err = require("resty.limit." .. kind).new("plugin-limit-" .. kind, ...)
    local delay
    if limit then delay, err = limit:incoming(want.id .. ":" .. ctx.var.remote_addr, true) end
    if not delay and err ~= "rejected" then core.log.error("limit of requests: ", err) end
    return not delay
end
return function(conf, ctx)
    local want = conf.{FIELD}.limits
    if is_spared(want, ctx) then return end
    local over = want.count and exceeds("count", want, ctx, want.count, want.seconds)
    if not over and not exceeds("req", want, ctx, want.rate, want.burst) then return end
    if not want.shown then return want.status end
    ctx.ingress_nginx_refused = want.status
end
"""
"""Counts requests as the plugins limit-req and limit-count do, but leaves the response to the function with pages."""
