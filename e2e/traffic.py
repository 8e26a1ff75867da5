"""Requests through a gateway's data plane, and the responses; each on a new connection, without retries."""

import http.client
import json
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from e2e.cluster.client import wait_until
from e2e.stream import Stream

REQUEST_TIMEOUT = 10.0
LIVE_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a request. `status` is 0 if the connection failed; then `text` has the error."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def pod(self) -> str:
        """The pod that responded, or an empty string."""
        return self.headers.get("x-pod", "")

    @property
    def seen(self) -> dict[str, Any]:
        """The request as the pod received it."""
        got: dict[str, Any] = json.loads(self.text)
        return got

    def received(self, header: str) -> str:
        """Return a header (in lower case) of the request as the pod received it; empty if no pod responded."""
        return str(self.seen["headers"].get(header, "")) if self.pod else ""


class Traffic:
    """Sends requests to one gateway.

    Args:
        proxy_url: Its URL for HTTP.
        tls_address: Its host:port for TLS, or empty.
    """

    def __init__(self, proxy_url: str, tls_address: str = "") -> None:
        parts = urlsplit(proxy_url)
        self.address = (parts.hostname or "", parts.port or 80)
        self._tls_address = tls_address

    def send(
        self,
        host: str,
        path: str = "/",
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
    ) -> Response:
        """Send one request over a new connection."""
        connection = http.client.HTTPConnection(*self.address, timeout=REQUEST_TIMEOUT)
        return _exchange(connection, method, path, {"Host": host, **(headers or {})}, body)

    def send_tls(self, sni: str, path: str = "/", *, context: ssl.SSLContext | None = None) -> tuple[Response, str]:
        """Send one request over TLS; return the response and the server's certificate (DER, hex)."""
        assert self._tls_address, "this gateway has no TLS listener"
        tls_host, _, tls_port = self._tls_address.rpartition(":")
        trust = context or _trusting()
        try:
            with (
                socket.create_connection((tls_host, int(tls_port)), timeout=REQUEST_TIMEOUT) as raw,
                trust.wrap_socket(raw, server_hostname=sni) as secured,
            ):
                connection = http.client.HTTPConnection(sni, timeout=REQUEST_TIMEOUT)
                connection.sock = secured
                certificate = secured.getpeercert(binary_form=True) or b""
                return _exchange(connection, "GET", path, {"Host": sni}, None), certificate.hex()
        except (OSError, ssl.SSLError) as error:
            return Response(0, text=repr(error)), ""

    def until(self, wanted: Callable[[Response], bool], host: str, path: str = "/", **request: Any) -> Response:
        """Send requests until a response is as wanted; the time limit allows for a loaded machine."""
        what = f"the wanted response for {host}{path}"
        return wait_until(lambda: self.send(host, path, **request), wanted, what, LIVE_TIMEOUT)

    def until_status(self, status: int, host: str, path: str = "/", **request: Any) -> Response:
        """Send requests until a response has this status."""
        return self.until(lambda answer: answer.status == status, host, path, **request)

    def counts(self, requests: int, host: str, path: str = "/", **request: Any) -> Counter[str]:
        """Send many requests; return the number of responses by pod, or by status if no pod responded."""
        answers = (self.send(host, path, **request) for _ in range(requests))
        return Counter(answer.pod or str(answer.status) for answer in answers)


class RequestLoop(Stream):
    """Sends one request after another in a thread until it is stopped, and keeps every response."""

    def __init__(self, traffic: Traffic, host: str, path: str = "/", *, pause: float = 0.005) -> None:
        super().__init__(self._send, pause=pause)
        self.answers: list[tuple[float, Response]] = []
        """(monotonic time in seconds when the request began, response)."""
        self._traffic, self._host, self._path = traffic, host, path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            assert self.answers, "the request loop sent nothing"

    @property
    def failures(self) -> list[tuple[float, Response]]:
        """Every response other than 200."""
        return [(at, answer) for at, answer in self.answers if answer.status != 200]

    def _send(self, _number: int) -> None:
        began = time.monotonic()
        self.answers.append((began, self._traffic.send(self._host, self._path)))


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str], body: str | None
) -> Response:
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        reply = connection.getresponse()
        text = reply.read().decode(errors="replace")
        return Response(reply.status, {name.lower(): value for name, value in reply.getheaders()}, text)
    except (OSError, http.client.HTTPException) as error:
        return Response(0, text=repr(error))
    finally:
        connection.close()


def _trusting() -> ssl.SSLContext:
    """Return a context that accepts any certificate: stories check which one the server sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
