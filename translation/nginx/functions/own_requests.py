"""What functions that send requests have in common: the response of a backend, and a limit of requests at a time."""

from __future__ import annotations

MOST = 2048
"""Requests that functions of a worker of a gateway send at the same time; a route may send a quarter of them."""

OWN_REQUESTS = f"""local http = require("resty.http")
local function new_client()
    local client = http.new()
    client.read_response = function(self, params)
        local answer, err
        repeat answer, err = http.read_response(self, params) until not answer or answer.status >= 200
        return answer, err
    end
    return client
end
local function release(held)
    if held.is_released then return end
    local all, id = held.all, held.id
    held.is_released, all.total, all[id] = true, all.total - 1, all[id] > 1 and all[id] - 1 or nil
end
local RELEASE = {{name = "ingress-nginx-requests", log = release}}
local function reserved(ctx)
    local all, id = package.loaded["ingress_nginx.requests"] or {{total = 0}}, "route " .. ctx.route_id
    package.loaded["ingress_nginx.requests"] = all
    if all.total >= {MOST} or (all[id] or 0) >= {MOST // 4} then return nil end
    all.total, all[id] = all.total + 1, (all[id] or 0) + 1
    local held, plugins = {{all = all, id = id}}, ctx.plugins
    plugins[#plugins + 1] = RELEASE
    plugins[#plugins + 1] = held
    return held
end
"""
"""`new_client` returns a client that passes over interim responses, such as 103 (Early Hints): resty.http takes them
for the response, and the next request of the connection would get the response of this one.

`reserved` returns a place for a request, or nil if there is none. A function does not notice that its client has gone,
so that a few clients could take all connections of a worker with requests to a slow backend. `release` frees the
place; the end of the request does so, too.
"""
