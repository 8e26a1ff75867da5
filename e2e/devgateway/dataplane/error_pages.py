"""The gateway's own responses: nginx error pages, and the headers that every response has."""

from __future__ import annotations

from e2e.devgateway.dataplane.http1 import Headers

SERVER = ("Server", "APISIX/3.18.0")
TITLES = {
    301: "301 Moved Permanently",
    302: "302 Found",
    303: "303 See Other",
    307: "307 Temporary Redirect",
    308: "308 Permanent Redirect",
    400: "400 Bad Request",
    401: "401 Authorization Required",
    403: "403 Forbidden",
    404: "404 Not Found",
    405: "405 Not Allowed",
    429: "429 Too Many Requests",
    500: "500 Internal Server Error",
    502: "502 Bad Gateway",
    503: "503 Service Temporarily Unavailable",
    504: "504 Gateway Time-out",
}
HTML: Headers = [("Content-Type", "text/html; charset=utf-8"), SERVER]
REDIRECT: Headers = [("Content-Type", "text/html"), SERVER]
"""nginx generates the pages of 301 and 302 itself, the gateway those of other codes."""
TEXT: Headers = [("Content-Type", "text/plain; charset=utf-8"), SERVER]
JSON: Headers = [("Content-Type", "application/json"), SERVER]


def error_page(status: int) -> bytes:
    """Return the HTML page of a status."""
    title = TITLES.get(status, str(status))
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        '<hr><center>openresty</center>\r\n<p><em>Powered by <a href="https://apisix.apache.org/">APISIX</a>.</em>'
        "</p></body>\r\n</html>\r\n"
    ).encode()
