"""The headers of a request as the client wrote them, for functions that pass them on."""

from __future__ import annotations

RAW_HEADERS = """local function raw_headers()
    local read, raw = pcall(ngx.req.raw_header, true)
    if not read then return nil end
    local found = {}
    for line in raw:gmatch("[^\\r\\n]+") do
        local name, text = line:match("^([^:]+):[ \\t]*(.*)$")
        if name then found[#found + 1] = {name, text:match("^(.*[^ \\t])") or ""} end
    end
    return found
end
"""
"""Returns pairs of name and text in their order; nil in HTTP/2, which has no raw header.

nginx accepts lines without a colon. A pattern for a whole line, without an anchor, would start again at each of
their characters, which takes seconds for a line of 8 kB.
"""
