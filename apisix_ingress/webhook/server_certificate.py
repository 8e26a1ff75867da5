"""The certificate of the webhook and the CA of its clients, reloaded when their files change.

Open connections keep theirs. If a pair does not match or a file cannot be read (it is being replaced),
the previous ones stay in use.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field

import structlog

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.regular_files import FileVersion, file_version

log = structlog.get_logger()

CHECK_INTERVAL = 1.0
"""Seconds between two checks of the files."""


@dataclass(slots=True)
class ServerCertificate:
    """The TLS context of the server.

    Args:
        cert_file: PEM certificate chain.
        key_file: PEM private key, without a password.
        clock: Schedules the checks.
        client_ca_file: PEM certificates, one of which must have signed the client's certificate; empty: every client is
            served.

    Raises:
        ConfigError: At the start, if the files cannot be used.
    """

    cert_file: str
    key_file: str
    clock: Clock
    client_ca_file: str = ""
    context: ssl.SSLContext = field(init=False)
    """The context for the server: each handshake uses the current certificate."""
    _current: ssl.SSLContext = field(init=False)
    _stamp: tuple[FileVersion, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self._stamp = self._look()
        try:
            self._current = self._load()
            self.context = self._load()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"webhook: {self._files}: {_reason(error)}; give a readable PEM certificate and its key"
                + (", and the certificates of the clients' CA" if self.client_ca_file else "")
            ) from None
        # A context in use takes a new certificate before its key, and a handshake in between fails.
        self.context.sni_callback = self._choose

    async def follow(self) -> None:
        """Reload the pair whenever its files change, until cancelled."""
        while True:
            await self.clock.sleep(CHECK_INTERVAL)
            await asyncio.to_thread(self.reload)

    def reload(self) -> bool:
        """Reload the pair if its files changed; return whether a new one is served."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        # An invalid pair is logged once and read again when a file changes: the other half may follow.
        self._stamp = stamp
        try:
            self._current = self._load()
        except (OSError, ValueError) as error:
            log.warning("certificate.kept", files=self._files, reason=_reason(error))
            return False
        log.info("certificate.loaded", files=self._files)
        return True

    @property
    def _files(self) -> str:
        return ", ".join(self._paths)

    @property
    def _paths(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.cert_file, self.key_file, self.client_ca_file)))

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Select the current certificate; called for each handshake, with or without a server name."""
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.cert_file, self.key_file, password=_no_password)
        if self.client_ca_file:
            context.load_verify_locations(cafile=self.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _look(self) -> tuple[FileVersion, ...]:
        return tuple(file_version(path) for path in self._paths)


def _no_password() -> str:
    """Reject a key with a password; otherwise OpenSSL would prompt for it on the terminal."""
    raise ValueError("the private key has a password")


def _reason(error: Exception) -> str:
    """Return what is wrong with a file; OpenSSL's messages contain no secrets."""
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
