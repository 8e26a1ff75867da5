"""What functions that send requests have in common: the response of a backend, and a limit of requests at a time."""

from __future__ import annotations

MOST = 2048
"""Requests that functions of a worker of a gateway send at the same time.

A route may send a quarter of them, and the routes of a namespace as many as are free: half of them, or less if others
send some.
"""

MOST_OF_HEAD = 2**18
"""Bytes of the status, the headers and the interim responses before a response."""

MOST_OF_BODY = 2**20
"""Bytes of the body of a response that is not forwarded."""

CLIENT = f"""local http = require("resty.http")
local function new_client(most)
    local client, calls, left, line = http.new(), 0, 0, nil
    local sock = client.sock
    local function line_of()
        line = line or sock:receiveuntil("\\n")
        local text, err, part = line(65536)
        if text and line(1) then return nil, "a line of the response is too long" end
        return text and text:gsub("[\\r]", ""), err, part
    end
    local function receive(_, size)
        calls = calls + 1
        if calls % 16 == 0 then ngx.sleep(0) end
        if left < (tonumber(size) or 1) then return nil, "the response is too large" end
        local text, err, part
        if size == "*l" then
            text, err, part = line_of()
        elseif size == "*a" then
            text, err, part = sock:receive(left + 1)
            if err == "closed" then return part end
        else
            text, err, part = sock:receive(size)
        end
        left = left - math.max(#(text or ""), 256)
        return text, err, part
    end
    client.sock = setmetatable({{receive = receive}}, {{__index = function(_, name)
        return function(_, ...) return sock[name](sock, ...) end
    end}})
    client.read_response = function(self, params)
        local answer, err
        left = {MOST_OF_HEAD}
        repeat answer, err = http.read_response(self, params) until not answer or answer.status >= 200
        left = most or math.huge
        return answer, err
    end
    return client
end
"""
"""`new_client(most)` returns a client that pauses and counts: a gateway does not switch to other requests while a
server keeps it supplied with lines or chunks, however tiny, and keeps what it reads in memory. It reads at most `most`
bytes of a body, and of many tiny chunks less; without a limit, the function has to forward or count them.

It also passes over interim responses, such as 103 (Early Hints): resty.http takes them for the response, and the next
request of the connection would get the response of this one.
"""

OWN_REQUESTS = f"""{CLIENT}local function release(held)
    if held.is_released then return end
    local all = held.all
    held.is_released, all.total = true, all.total - 1
    for _, id in ipairs(held.ids) do all[id] = all[id] > 1 and all[id] - 1 or nil end
end
local RELEASE = {{name = "ingress-nginx-requests", log = release}}
local function reserved(ctx, namespace)
    local all = package.loaded["ingress_nginx.requests"] or {{total = 0}}
    local ids = {{"route " .. ctx.route_id, "namespace " .. namespace}}
    package.loaded["ingress_nginx.requests"] = all
    if (all[ids[1]] or 0) >= {MOST // 4} or (all[ids[2]] or 0) >= {MOST} - all.total then return nil end
    all.total = all.total + 1
    for _, id in ipairs(ids) do all[id] = (all[id] or 0) + 1 end
    local held, plugins = {{all = all, ids = ids}}, ctx.plugins
    plugins[#plugins + 1] = RELEASE
    plugins[#plugins + 1] = held
    return held
end
"""
"""`reserved` returns a place for a request of a namespace, or nil if there is none. A function does not notice that its
client has gone, so that a few clients could take all connections of a worker with requests to a slow backend. `release`
frees the place; the end of the request does so, too.
"""
