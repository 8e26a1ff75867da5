"""One request in the data plane: the inputs of the router, the expressions and the plugins."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from e2e.devgateway.dataplane.http1 import Headers, Request

Body = dict[str, Any]
_VARIABLE = re.compile(r"(\\\$[0-9a-zA-Z_]+)|\$\{([0-9a-zA-Z_]+)\}|\$([0-9a-zA-Z_]+)")


def normalise(path: str) -> str:
    """Return a path in the form that is matched: decoded, slashes merged, dots resolved."""
    decoded = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    parts: list[str] = []
    pieces = re.sub("/+", "/", decoded).split("/")[1:]
    for piece in pieces:
        if piece == "..":
            del parts[-1:]
        elif piece != ".":
            parts.append(piece)
    if pieces and pieces[-1] in (".", ".."):
        parts.append("")
    return "/" + "/".join(parts)


@dataclass(slots=True)
class Outgoing:
    """A response before it is sent; a body that is an iterator is streamed."""

    status: int
    headers: Headers
    body: bytes | AsyncIterator[bytes] = b""

    def set(self, name: str, value: str) -> None:
        """Replace a header."""
        self.remove(name)
        self.headers.append((name, value))

    def remove(self, name: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]

    def replace_body(self, body: bytes) -> None:
        """Respond with other content."""
        self.body = body
        self.remove("content-length")
        self.remove("content-encoding")


@dataclass
class Context:
    """Data of the request, and what plugins changed for the upstream."""

    request: Request
    remote_addr: str = ""
    route: Body | None = None
    route_id: str = ""
    service_id: str = ""
    consumer: Body | None = None
    consumer_name: str | None = None
    plugins: dict[str, Body] = field(default_factory=dict)
    headers: Headers = field(default_factory=list)
    method: str = ""
    upstream_target: str | None = None
    upstream_host: str | None = None
    upstream: Body | None = None
    upstream_key: str = ""
    websocket: bool = False
    response_headers: Headers = field(default_factory=list)

    def __post_init__(self) -> None:
        request = self.request
        self.method = request.method
        self.headers = list(request.headers)
        real_ip = request.get("x-real-ip")
        self.remote_addr = real_ip if real_ip and request.peer == "127.0.0.1" else request.peer
        # The gateway sets these before plugins run, which may change them.
        self.set_header("X-Forwarded-Proto", self.scheme)
        self.set_header("X-Forwarded-Host", self.host_header)
        self.set_header("X-Forwarded-Port", self.port)

    @property
    def scheme(self) -> str:
        return "https" if self.request.secure else "http"

    @cached_property
    def raw_path(self) -> str:
        return self.request.target.partition("?")[0]

    @cached_property
    def query(self) -> str:
        return self.request.target.partition("?")[2]

    @cached_property
    def uri(self) -> str:
        return normalise(self.raw_path)

    @cached_property
    def args(self) -> dict[str, str]:
        """The first value of every query argument."""
        found: dict[str, str] = {}
        for name, value in parse_qsl(self.query, keep_blank_values=True):
            found.setdefault(name, value)
        return found

    @cached_property
    def host_header(self) -> str:
        return self.request.get("host") or ""

    @cached_property
    def host(self) -> str:
        """The host in lower case without port and trailing dot."""
        host = self.host_header.lower()
        if host.startswith("["):
            return host.partition("]")[0] + "]"
        return host.partition(":")[0].rstrip(".")

    @cached_property
    def port(self) -> str:
        """The port in the request, else the listener's."""
        port = self.host_header.rpartition(":")[2]
        return port if ":" in self.host_header and port.isdigit() else str(self.request.local_port)

    def lookup(self, name: str) -> object:
        """Return a request variable by its nginx name, or None."""
        if name.startswith("arg_"):
            return self.args.get(name[4:])
        if name.startswith("http_"):
            return self.header(name[5:].replace("_", "-"))
        if name.startswith("original_x_forwarded_"):
            return self.request.get(name[9:].replace("_", "-")) or ""
        if name.startswith("cookie_"):
            return self.cookies.get(name[7:])
        value = self._variables().get(name)
        return None if value is None else str(value)

    def _variables(self) -> dict[str, object]:
        return {
            "uri": self.uri,
            "request_uri": self.request.target,
            "real_request_uri": self.request.target,
            "request_id": self.request_id,
            "http_host": self.host_header,
            "host": self.host,
            "remote_addr": self.remote_addr,
            "realip_remote_addr": self.request.peer,
            "request_method": self.request.method,
            "method": self.request.method,
            "scheme": self.scheme,
            "query_string": self.query or None,
            "args": self.query or None,
            "is_args": "?" if self.query else "",
            "server_addr": self.request.local_address,
            "server_port": self.request.local_port,
            "ssl_server_name": self.request.server_name,
            "ssl_client_verify": self._client_verify(),
            "content_length": self.request.get("content-length"),
            "content_type": self.request.get("content-type"),
            "consumer_name": self.consumer_name,
            "route_id": self.route_id or None,
            "service_id": self.service_id or None,
            "server_protocol": self.request.start[2],
            "upstream_uri": self.upstream_target,
        }

    def _client_verify(self) -> str | None:
        if not self.request.secure:
            return None
        return "SUCCESS" if self.request.has_certificate else "NONE"

    def header(self, name: str) -> str | None:
        """Return a header as it is now: plugins may have changed it."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    @cached_property
    def request_id(self) -> str:
        """The id of the request in nginx: 32 hex digits."""
        return secrets.token_hex(16)

    @cached_property
    def cookies(self) -> dict[str, str]:
        pairs = (part.strip().partition("=") for part in (self.request.get("cookie") or "").split(";"))
        return {name: value for name, _, value in pairs if name}

    def expand(self, text: str) -> str:
        """Replace `$name` and `${name}` unless they follow a backslash."""

        def fill(found: re.Match[str]) -> str:
            if found.group(1):
                return found.group(1)[1:]
            value = self.lookup(found.group(2) or found.group(3))
            return "" if value is None else str(value)

        return _VARIABLE.sub(fill, text)

    # Headers for the upstream.

    def set_header(self, name: str, value: str) -> None:
        self.remove_header(name)
        self.headers.append((name, value))

    def remove_header(self, name: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
