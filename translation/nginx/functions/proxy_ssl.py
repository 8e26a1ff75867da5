"""The function for TLS to backends: the client certificate, the server name and verification (proxy-ssl-*)."""

from __future__ import annotations

from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.shared_data import SHARED_DATA

BACKEND_TLS = f"""local core = require("apisix.core")
local stores = setmetatable({{}}, {{__mode = "k"}})
{SHARED_DATA}local function store_of(want)
    if not want.ca then return nil end
    local data = assert(shared_data(want.ca), "the gateway does not have the CA")
    stores[data] = stores[data] or {{}}
    local known = stores[data]
    if not known[want.depth] then
        local store = assert(require("resty.openssl.x509.store").new())
        for _, text in ipairs(data.ca) do
            assert(store:add(assert(require("resty.openssl.x509").new(ngx.decode_base64(text), "DER"))))
        end
        assert(store:set_depth(want.depth))
        known[want.depth] = store
    end
    return known[want.depth]
end
local function demand(want, ctx)
    local upstream, ssl = require("resty.apisix.upstream"), require("apisix.ssl")
    local pair, name = ctx.upstream_ssl, ctx.var.upstream_host
    assert(upstream.set_cert_and_key(assert(ssl.fetch_cert(name, pair.cert)), assert(ssl.fetch_pkey(name, pair.key))))
    if want.name then ctx.var.upstream_host = want.name end
    if want.ca then
        assert(upstream.set_ssl_trusted_store(store_of(want)))
        assert(upstream.set_ssl_verify(true))
    end
end
local HOOK = {{name = "ingress-nginx-tls"}}
function HOOK.before_proxy(want, ctx)
    if ngx.get_phase() == "balancer" then
        ctx.var.upstream_host = ctx.ingress_nginx_host
        return
    end
    local upstream = ctx.upstream_conf
    ctx.ingress_nginx_host = ctx.var.upstream_host
    ctx.upstream_conf = setmetatable({{}}, {{__index = function(_, name)
        if name == "keepalive_pool" and ngx.get_phase() == "balancer" then demand(want, ctx) end
        return upstream[name]
    end}})
end
return function(conf, ctx)
    local want = conf.{FIELD}.tls
    local ok, err = pcall(store_of, want)
    if not ok or not require("apisix.core.version").VERSION:find("^3%.18%.") then
        if not want.ca then return end
        core.log.error("proxy-ssl-verify: ", ok and "unknown version of APISIX" or err)
        return 503
    end
    core.table.insert(ctx.plugins, HOOK)
    core.table.insert(ctx.plugins, want)
end
"""
"""Sets TLS to the backend just before the gateway connects: APISIX 3.18 has no fields for the CA and the server name.

Its nginx module verifies certificates for one request, but ignores this and the client certificate if responses are not
buffered. `keepalive_pool` is the last field that the balancer reads before it connects, for the first try and
each further one. The server name is that of the variable from which the header Host has been written by then; HOOK
restores it for a further try. Requests that need verification are rejected in unknown versions of APISIX.
"""
