"""Requests that are sent to both gateways, and their responses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Probe:
    """One request.

    Attributes:
        host: Value of the Host header; with https also the server name.
        target: Path and query as in the request line, already encoded.
        scheme: http or https.
        headers: Further headers, in order.
        origin: Its source, e.g. `Ingress shop/web` or `access.log:12`.
        samples: Number of times it is sent to each gateway; more than one if traffic is split by weight.
    """

    host: str
    target: str
    scheme: str = "http"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    origin: str = field(default="", compare=False)
    samples: int = field(default=1, compare=False)

    @property
    def url(self) -> str:
        """Its URL, for display."""
        return f"{self.scheme}://{self.host}{self.target}"

    def merged(self, other: Probe) -> Probe:
        """Return one probe for two equal ones, with the larger number of samples."""
        return replace(self, samples=max(self.samples, other.samples))


@dataclass(frozen=True, slots=True)
class Address:
    """A gateway under test.

    Attributes:
        host: IP address or name to connect to, whatever the Host header.
        ports: Port for each scheme.
    """

    host: str
    ports: Mapping[str, int]

    def __str__(self) -> str:
        """Render as on the command line."""
        return f"{self.host}:{self.ports['http']},{self.ports['https']}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response.

    Attributes:
        status: HTTP status; 0 without a response.
        headers: In order, names in lower case.
        body: Up to the size that the client reads.
        backend: The identity of the backend, from its header or field; empty if unknown.
        certificate: SHA-256 of the served certificate, https only.
        error: Why there is no response.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    backend: str = ""
    certificate: str = ""
    error: str = ""

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a header, in order."""
        return tuple(value for key, value in self.headers if key == name)

    @property
    def digest(self) -> str:
        """A short digest of the body."""
        return hashlib.sha256(self.body).hexdigest()[:16]
