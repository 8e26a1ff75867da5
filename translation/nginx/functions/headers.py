"""The functions that write headers: those about the client behind a front proxy, and those of a backend's answer."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD

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
"""Passes on what a front proxy says about the client: scheme, host and port."""
