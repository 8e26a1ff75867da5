"""A request as the gateway's matching sees it: host, path, and the variables of expressions.

Rules from the recorded data plane: the host is in lower case, without port and trailing dot; the path is decoded,
its slashes merged and its dots resolved before it is matched (matching facts 1 and 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import SplitResult, parse_qsl, unquote_to_bytes, urlsplit

from apisix_ingress.errors import UsageError
from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from apisix_ingress.model.network.ip_address import is_ip

_METHOD = ValuePattern(r"[A-Z]+(-[A-Z]+)?")
_UNKNOWABLE = ValuePattern(
    r"(post_arg_|graphql_|ssl_|upstream_|balancer_|time_|tcpinfo_|proxy_protocol_|geoip2?_)\w*"
    r"|msec|pid|binary_remote_addr|connection(_requests|_time)?|remote_port|server_addr|request_(id|length|time|body|completion)|body_bytes_sent"
    r"|bytes_(sent|received)|hostname|nginx_version|pipe|status|realpath_root|document_root|request_filename"
)
_MALFORMED = TextPattern(r"%(?:00|[0-9A-Fa-f]?(?:[^0-9A-Fa-f]|$))")
"""An escape without two hexadecimal digits, or of the character 0."""
_LONGEST_LINE = 8_192
"""Bytes of the longest line of a request: the default size of a buffer in large_client_header_buffers of nginx."""
_HEADER = ValuePattern(r"(?s)([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)", 65_536)


class Unknown(Exception):
    """A variable whose value the given request does not contain."""


@dataclass(frozen=True)
class ProbeRequest:
    """A request to explain.

    Attributes:
        method: In upper case.
        scheme: http or https.
        authority: The Host header: host, possibly with a port.
        target: Path and query as sent, e.g. `/a%20b?x=1`.
        headers: By lower-case name.
        remote_addr: Address of the client; empty if unknown.
        server_port: Port of the listener; None if unknown.
        server_addr: Address of the gateway; empty if unknown.
        server_name: TLS server name: the host of an https URL, whatever the Host header; empty if unknown.
    """

    method: str
    scheme: str
    authority: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    remote_addr: str = ""
    server_port: int | None = None
    server_addr: str = ""
    server_name: str = ""

    @cached_property
    def host(self) -> str:
        """The host to match: the gateway compares it as a string, so an IPv6 address has only one notation.

        `canonical_host` would find routes with another notation, which the gateway does not.
        """
        host = self.authority.lower()
        if host.startswith("["):
            return host.partition("]")[0] + "]"
        return host.partition(":")[0].rstrip(".")

    @cached_property
    def path(self) -> str:
        """The path to match."""
        return normalise(self._target.partition("?")[0])

    @cached_property
    def _target(self) -> str:
        """The target without a fragment, which nginx ignores."""
        return self.target.partition("#")[0]

    @cached_property
    def rejection(self) -> tuple[int, str] | None:
        """The status and cause if nginx rejects the request before a route is chosen; None if it does not."""
        if self.method in ("TRACE", "CONNECT"):
            return 405, f"nginx rejects the method {self.method}"
        path = self._target.partition("?")[0]
        if _MALFORMED.found(path):
            return 400, "nginx rejects an invalid percent-encoding in the path"
        if _leaves_root(path):
            return 400, "nginx rejects a path above the root"
        if len(f"{self.method} {self.target} HTTP/1.1\r\n".encode()) > _LONGEST_LINE:
            return 414, f"nginx rejects a request line of more than {_LONGEST_LINE} bytes"
        if any(len(f"{name}: {value}\r\n".encode()) > _LONGEST_LINE for name, value in self.headers.items()):
            return 400, f"nginx rejects a header of more than {_LONGEST_LINE} bytes"
        return None

    @cached_property
    def _query(self) -> str:
        return self._target.partition("?")[2]

    @cached_property
    def _arguments(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in parse_qsl(self._query, keep_blank_values=True):
            found.setdefault(name, value)
        return found

    @cached_property
    def _cookies(self) -> dict[str, str]:
        pairs = (part.strip().partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name: value for name, _, value in pairs if name}

    def variable(self, name: str) -> str | None:
        """Return a variable by its nginx name, or None if the request does not have it.

        Raises:
            Unknown: The given request does not contain it.
        """
        if name.startswith("arg_"):
            return self._arguments.get(name[4:])
        if name == "http_host":
            return self.authority
        if name.startswith("http_"):
            return self.headers.get(name[5:].lower().replace("_", "-"))
        if name.startswith("cookie_"):
            return self._cookies.get(name[7:])
        if name in ("remote_addr", "realip_remote_addr") and not self.remote_addr:
            raise Unknown(f"{name} is unknown; use --remote-addr")
        if name == "server_port" and self.server_port is None:
            raise Unknown("server_port is unknown; use --server-port")
        if name == "server_addr" and not self.server_addr:
            raise Unknown("server_addr is unknown; use --server-addr")
        if name == "ssl_server_name" and self.scheme == "https" and not self.server_name:
            raise Unknown("ssl_server_name is unknown; use a URL with a host")
        if name not in self._plain and _UNKNOWABLE.fits(name):
            raise Unknown(f"{name} cannot be derived from a URL and headers")
        return self._plain.get(name)

    @cached_property
    def _plain(self) -> dict[str, str | None]:
        return {
            "uri": self.path,
            "request_uri": self.target,
            "real_request_uri": self.target,
            "host": self.host,
            "remote_addr": self.remote_addr,
            "realip_remote_addr": self.remote_addr,
            "request_method": self.method,
            "method": self.method,
            "scheme": self.scheme,
            "https": "on" if self.scheme == "https" else "",
            "query_string": self._query or None,
            "args": self._query or None,
            "is_args": "?" if self._query else "",
            "server_port": str(self.server_port),
            "server_addr": self.server_addr,
            "ssl_server_name": self.server_name or None,
            "content_length": self.headers.get("content-length"),
            "content_type": self.headers.get("content-type"),
            "server_protocol": "HTTP/1.1",
        }


def _leaves_root(path: str) -> bool:
    depth = 0
    for piece in unquote_to_bytes(path).split(b"/")[1:]:
        depth += -1 if piece == b".." else 0 if piece in (b"", b".") else 1
        if depth < 0:
            return True
    return False


def normalise(path: str) -> str:
    """Return a path in the form that is matched: decoded, slashes merged, dots resolved."""
    decoded = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    while "//" in decoded:
        decoded = decoded.replace("//", "/")
    pieces = decoded.split("/")[1:]
    parts: list[str] = []
    for piece in pieces:
        if piece == "..":
            del parts[-1:]
        elif piece != ".":
            parts.append(piece)
    if pieces and pieces[-1] in (".", ".."):
        parts.append("")
    return "/" + "/".join(parts)


def parse_request(
    url: str,
    method: str = "GET",
    headers: tuple[str, ...] = (),
    remote_addr: str = "",
    server_port: int | None = None,
    *,
    server_addr: str = "",
) -> ProbeRequest:
    """Parse the arguments of `explain`; `host/path` means http.

    Args:
        url: `https://host/path?query`, `host/path` or `/path` (then without a host).
        method: Any case.
        headers: `Name: value` or `Name=value`; Host replaces the URL's.
        remote_addr: Address of the client.
        server_port: Port of the gateway's listener.
        server_addr: Address of the gateway.

    Raises:
        UsageError: One of them is malformed.
    """
    if not url:
        raise UsageError("the URL is empty; write https://host/path, host/path or /path")
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url):
        raise UsageError(f"URL {url!r} contains a space or a control character; percent-encode it")
    parts = _split(url)
    if not _METHOD.fits(method.upper()):
        raise UsageError(f"invalid method {method!r}; use e.g. GET")
    if remote_addr and not is_ip(remote_addr):
        raise UsageError(f"client address {remote_addr!r} is not an IP address; use e.g. 192.0.2.7")
    if server_addr and not is_ip(server_addr):
        raise UsageError(f"gateway address {server_addr!r} is not an IP address; use e.g. 192.0.2.7")
    if server_port is not None and not 0 < server_port < 65536:
        raise UsageError(f"invalid port {server_port}; use a number from 1 to 65535")
    given = dict(_header(text) for text in headers)
    authority = given.pop("host", parts.netloc.rpartition("@")[2])
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return ProbeRequest(
        method.upper(),
        parts.scheme,
        _ascii(authority),
        target,
        given,
        remote_addr,
        server_port,
        server_addr,
        _server_name(parts),
    )


def _server_name(parts: SplitResult) -> str:
    """Return the TLS server name that clients send for a URL; none for an address."""
    host = parts.hostname or ""
    return _ascii(host) if parts.scheme == "https" and not is_ip(host) else ""


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError as error:
        raise UsageError(f"invalid URL {url!r} ({error})") from None
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"URL {url!r} has the scheme {parts.scheme!r}; use http:// or https://")
    try:
        _ = parts.port
    except ValueError:
        raise UsageError(f"invalid URL {url!r} (invalid port)") from None
    return parts


def _header(text: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(text)
    if found is None or any(char in text for char in "\r\n\0"):
        raise UsageError(f"malformed header {text!r}; write -H 'Name: value'")
    return found[1].lower(), found[2]


def _ascii(authority: str) -> str:
    """Return a host with international labels as clients send it."""
    if authority.isascii():
        return authority
    host, colon, port = authority.partition(":")
    try:
        return host.encode("idna").decode("ascii") + colon + port
    except UnicodeError as error:
        raise UsageError(f"{host!r} is not a host name ({error})") from None
