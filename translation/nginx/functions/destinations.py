"""The check of functions that send requests: the resolved URL has the scheme, host and port of the annotation."""

from __future__ import annotations

LEADS_ELSEWHERE = """local function leads_elsewhere(client, uri, base)
    local rest = uri:sub(#base + 1)
    if not base:find("^https?://[%w._:%[%]-]+$") or uri:sub(1, #base) ~= base or uri:find("%c")
        or not (rest == "" or rest:find("^[/?]")) then
        return true
    end
    local found, wanted = client:parse_uri(uri, false), client:parse_uri(base, false)
    return not (found and wanted and found[1] == wanted[1] and found[2] == wanted[2] and found[3] == wanted[3])
end
"""
"""Compares with the parser that the client uses for its connection; anything unclear counts as another destination."""
