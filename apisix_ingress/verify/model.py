"""Requests that are sent to both gateways, and their answers."""

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
        target: Path and query as they stand in the request line, already encoded.
        scheme: http or https.
        headers: Further headers, in order.
        origin: Where it comes from, e.g. `Ingress shop/web` or `access.log:12`.
        samples: Times it is sent to each gateway; more than one where traffic is split by weight.
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
        """Its URL, for people."""
        return f"{self.scheme}://{self.host}{self.target}"

    def merged(self, other: Probe) -> Probe:
        """Return one probe for two equal ones: the more samples count."""
        return replace(self, samples=max(self.samples, other.samples))


@dataclass(frozen=True, slots=True)
class Address:
    """A gateway under test.

    Attributes:
        host: IP address or name that is connected to, whatever the Host header says.
        ports: Port for each scheme.
    """

    host: str
    ports: Mapping[str, int]

    def __str__(self) -> str:
        """Render as on the command line."""
        return f"{self.host}:{self.ports['http']},{self.ports['https']}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: HTTP status; 0 without an answer.
        headers: In order, names in lower case.
        body: Up to the size that the client reads.
        backend: Who answered, by the header or field that names backends; empty if nothing does.
        certificate: SHA-256 of the served certificate, https only.
        error: Why there is no answer.
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
