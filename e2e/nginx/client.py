"""The client: sends the requests of a case exactly as they were recorded."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

from e2e.nginx import http2
from e2e.nginx.backends import chunks

Json = dict[str, Any]
_TIMEOUT = 15.0
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests have `Content-Length: 0` without a body: the recording was made with Python's http.client."""


@dataclass
class Client:
    """Sends requests to a gateway.

    Args:
        address: Of the gateway.
        http, https: Its ports.
        certificate: Spec of a client certificate → TLS context that has it; the empty spec has no certificate.
    """

    address: str
    http: int
    https: int
    certificate: Any

    async def send(self, asked: Json, jar: dict[str, str]) -> Json:
        """Send one request and return the response, or `error` without one."""
        try:
            async with asyncio.timeout(asked.get("timeout", _TIMEOUT)):
                return await self._send(asked, jar)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as error:
            return {"error": type(error).__name__, "headers": []}

    async def _send(self, asked: Json, jar: dict[str, str]) -> Json:
        secure = asked.get("scheme") == "https"
        sni = asked.get("sni", asked["host"].partition(":")[0] if asked.get("host") else "")
        context = self.certificate(asked.get("cert", "")) if secure else None
        if asked.get("h2") and context:
            context.set_alpn_protocols(["h2"])
        elif context:
            context.set_alpn_protocols(["http/1.1"])
        reader, writer = await asyncio.open_connection(
            self.address,
            self.https if secure else self.http,
            ssl=context,
            server_hostname=(sni or "no-sni.invalid") if secure else None,
            local_addr=(asked.get("src", "192.0.2.1"), 0) if "." in asked.get("src", "192.0.2.1") else None,
        )
        try:
            if asked.get("h2"):
                return await http2.send(reader, writer, asked, "https" if secure else "http")
            writer.write(request_bytes(asked, jar))
            await writer.drain()
            return await _read(reader, asked, jar)
        finally:
            writer.close()


def request_bytes(asked: Json, jar: dict[str, str]) -> bytes:
    """Return a request in its wire format."""
    version = asked.get("version", "1.1")
    method = asked.get("method", "GET")
    given = [list(pair) for pair in asked.get("headers", [])]
    names = {name.lower() for name, _ in given}
    headers = [["Host", asked["host"]]] if asked.get("host") is not None else []
    for name, value in (("User-Agent", "probe"), ("Accept", "*/*"), ("Connection", "close")):
        if name.lower() not in names:
            headers.append([name, value])
    headers += given
    if asked.get("echo"):
        headers.append(["x-echo", json.dumps(asked["echo"])])
    if asked.get("jar") and jar:
        headers.append(["Cookie", "; ".join(f"{name}={value}" for name, value in jar.items())])
    body = b"x" * int(asked["size"]) if "size" in asked else str(asked.get("body", "")).encode()
    has_body = "size" in asked or "body" in asked
    if asked.get("chunked"):
        headers.append(["Transfer-Encoding", "chunked"])
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    elif (has_body or method in _WITH_BODY) and "content-length" not in names:
        headers.append(["Content-Length", str(len(body))])
    head = f"{method} {asked['path']} HTTP/{version}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    return head.encode("utf-8") + b"\r\n" + body


async def _read(reader: asyncio.StreamReader, asked: Json, jar: dict[str, str]) -> Json:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        if status != 100:
            break
    headers = [part.split(": ", 1) if ": " in part else [part.rstrip(":"), ""] for part in head[1:] if part]
    lower = {name.lower(): value for name, value in headers}
    body = b"" if asked.get("method") == "HEAD" or status == 101 else await _body(reader, lower)
    for name, value in headers:
        if name.lower() == "set-cookie" and asked.get("jar"):
            jar.update({key: morsel.value for key, morsel in SimpleCookie(value).items()})
    return {"status": status, "headers": headers, "backend": lower.get("x-backend"), "body": body.decode("latin-1")}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    try:
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        if "chunked" in headers.get("transfer-encoding", ""):
            return await chunks(reader)
        return await reader.read(-1)
    except (asyncio.IncompleteReadError, OSError):
        return b""


def tls_context(certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
    """Return a context that takes any server certificate, optionally with a client certificate from two files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context
