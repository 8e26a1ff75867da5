"""Sends a request to a gateway unchanged: no redirects, no path normalization, no certificate verification."""

from __future__ import annotations

import asyncio
import hashlib
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import orjson

from apisix_ingress import __version__
from apisix_ingress.verify.model import Address, Answer, Probe

LARGEST_BODY = 1 << 20
"""Bytes of a body that are read and compared."""


class GatewayClient:
    """Requests to one gateway, each on a separate connection: keep-alive would hide how traffic is balanced.

    Args:
        address: The gateway.
        timeout: Seconds for a connection and for the time without a byte; a request takes at most twice as long.
        backend_header: The header that identifies backends; empty: none.
        backend_field: The field of a JSON body that identifies them, e.g. `pod` or `env.HOSTNAME`; empty: none.
    """

    def __init__(self, address: Address, *, timeout: float, backend_header: str = "", backend_field: str = "") -> None:
        self.address = address
        self._timeout = timeout
        self._header = backend_header.lower()
        self._field = backend_field
        self._client = httpx.AsyncClient(
            # Two gateways are compared: this machine need not trust their certificates.
            verify=False,
            timeout=timeout,
            trust_env=False,
            # The cookie of one response must not reach other hosts: all have the address of the gateway.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            headers={"User-Agent": f"apisix-ingress-verify/{__version__}", "Connection": "close"},
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(self, probe: Probe) -> Answer:
        """Return the response; a failure is a response with `error`."""
        port = self.address.ports[probe.scheme]
        request = self._client.build_request(
            probe.method,
            httpx.URL(scheme=probe.scheme, host=self.address.host, port=port, path="/"),
            headers=[("Host", probe.host), *probe.headers],
            extensions={"target": probe.target.encode("latin-1", "replace"), "sni_hostname": probe.host},
        )
        try:
            # httpx limits only single reads: a response that arrives byte by byte would never end.
            async with asyncio.timeout(2 * self._timeout):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    body = await _read(response)
                    certificate = _certificate(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            return Answer(0, error="no complete response in time")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            return Answer(0, error=_failure_text(error))
        headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
        answer = Answer(response.status_code, headers, body, certificate=certificate)
        return Answer(answer.status, headers, body, self._backend(answer), certificate)

    def _backend(self, answer: Answer) -> str:
        if self._header and (found := answer.values(self._header)):
            return found[0]
        if not self._field:
            return ""
        try:
            document: Any = orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return ""
        for part in self._field.split("."):
            document = document.get(part) if isinstance(document, dict) else None
        return str(document) if isinstance(document, str | int) else ""


async def _read(response: httpx.Response) -> bytes:
    """Read the decoded body up to a limit: compression is compared by headers."""
    pieces, size = [], 0
    async for piece in response.aiter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size >= LARGEST_BODY:
            break
    return b"".join(pieces)[:LARGEST_BODY]


def _certificate(response: httpx.Response) -> str:
    stream = response.extensions.get("network_stream")
    secured = stream.get_extra_info("ssl_object") if stream is not None else None
    found = secured.getpeercert(binary_form=True) if secured is not None else None
    return hashlib.sha256(found).hexdigest() if found else ""


def _failure_text(error: Exception) -> str:
    """Return the text of a failure without addresses, so that two gateways can fail alike."""
    match error:
        case httpx.ConnectTimeout():
            return "no connection in time"
        case httpx.TimeoutException():
            return "no response in time"
        case httpx.ConnectError():
            text = str(error).lower()
            return "TLS handshake failed" if "ssl" in text or "tls" in text else "connection refused or unreachable"
        case httpx.RemoteProtocolError() | httpx.ReadError():
            return "connection closed without a response"
        case _:
            return type(error).__name__
