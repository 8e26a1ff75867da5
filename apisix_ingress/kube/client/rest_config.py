"""Connection settings for an API server, and the HTTP session that uses them.

Nothing here reads a kubeconfig or knows about tokens: `credentials` produces the settings, `requests` uses the session.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

_READ_BUFFER = 2**21
"""Bytes; the default of aiohttp is smaller than many events of a watch."""


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text.

    Attributes:
        content: The text.
        path: The file that it was read from; None if it has no file.
    """

    content: bytes = field(repr=False)
    path: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RestConfig:
    """How to connect to an API server. Two that are equal can share their connections.

    Attributes:
        host: URL without a slash at its end.
        ca: Certificates to verify the server with; None: those of the system.
        certificate: Client certificate, with its chain.
        key: Key of the client certificate; None: it is in the same file.
        is_verified: Whether the certificate of the server is verified.
        server_name: Name in the certificate of the server, if it is not the host of the URL.
        proxy: URL of a proxy; empty: the one from the environment, if any.
    """

    host: str
    ca: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    is_verified: bool = True
    server_name: str = ""
    proxy: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the TLS settings were read from."""
        return tuple(pem.path for pem in (self.ca, self.certificate, self.key) if pem is not None and pem.path)


def open_session(config: RestConfig) -> aiohttp.ClientSession:
    """Return a session whose pool is unlimited, so that watches never starve requests.

    Raises:
        OSError: The CA certificates, the client certificate or its key cannot be used.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=tls_context(config)),
        cookie_jar=aiohttp.DummyCookieJar(),
        # With trust_env, aiohttp reads the environment and ~/.netrc in a thread for each request.
        trust_env=False,
        proxy=proxy_of(config),
        read_bufsize=_READ_BUFFER,
    )


def proxy_of(config: RestConfig) -> str | None:
    """Return the proxy in the settings, else the one from the environment; None if there is none."""
    return config.proxy or environment_proxy(config.host)


def environment_proxy(url: str) -> str | None:
    """Return the proxy from the environment for a URL."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def tls_context(config: RestConfig) -> ssl.SSLContext:
    """Return the TLS context.

    Raises:
        OSError: The CA certificates, the client certificate or its key cannot be used.
    """
    # Without text, `create_default_context` would trust the certificates of the system. Text outside of the
    # certificates may have any encoding.
    authorities = None if config.ca is None else config.ca.content.decode("ascii", "ignore") or "\n"
    context = ssl.create_default_context(cadata=authorities)
    if config.certificate is not None:
        _load_client_certificate(context, config.certificate, config.key)
    if not config.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_client_certificate(context: ssl.SSLContext, certificate: Pem, key: Pem | None) -> None:
    with ExitStack() as files:
        certificate_file = files.enter_context(_as_file(certificate))
        key_file = files.enter_context(_as_file(key)) if key is not None else None
        # Without a password, OpenSSL would ask the terminal for the one of an encrypted key.
        context.load_cert_chain(certificate_file, key_file, password="")


@contextmanager
def _as_file(pem: Pem) -> Iterator[Path]:
    """Yield a file with the text, private to this user: OpenSSL reads client certificates only from files."""
    if pem.path is not None:
        yield pem.path
        return
    with tempfile.NamedTemporaryFile(prefix="apisix-ingress-") as file:
        file.write(pem.content)
        file.flush()
        yield Path(file.name)
