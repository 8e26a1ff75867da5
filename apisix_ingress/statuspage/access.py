"""Access control, and the response headers that let a browser run only the page's own files."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from aiohttp import hdrs, web

Audience = Literal["local", "everyone"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

REFUSAL = (
    "The status page is served to this Pod's own loopback only, which is where `kubectl port-forward` comes from: "
    "open it as http://localhost:<port>/status. To serve it to everyone who can reach the port, set "
    "http.status_page: everyone.\n"
)
_LOOPBACK = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))


def is_local(request: web.BaseRequest) -> bool:
    """Return whether a request comes over loopback and has a loopback host.

    The Host is checked as well: the browser would treat a site whose name resolves to 127.0.0.1 as this page. The side-
    car of a mesh forwards external requests from another address of 127.0.0.0/8.
    """
    return _is_loopback(request.remote or "") and _names_loopback(request.headers.get(hdrs.HOST, ""))


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address) in _LOOPBACK


def _names_loopback(authority: str) -> bool:
    try:
        host = urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return False
    return host == "localhost" or _is_loopback(host)


async def protect(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers to every response below `/status`, including errors (a signal of aiohttp)."""
    if request.path == "/status" or request.path.startswith("/status/"):
        response.headers.update(HEADERS)
        response.headers.setdefault(hdrs.CACHE_CONTROL, "private, no-cache")


def tagged(request: web.Request, body: bytes, content_type: str, status: int = 200) -> web.Response:
    """Return a body with an ETag, or 304 if the client has it."""
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    known = {f'"{each.value}"' for each in request.if_none_match or ()}
    if status == 200 and (tag in known or '"*"' in known):
        return web.Response(status=304, headers={hdrs.ETAG: tag})
    headers = {hdrs.ETAG: tag, hdrs.CONTENT_TYPE: content_type}
    return web.Response(body=body, status=status, headers=headers)
