"""The TLS context for one gateway cluster, rebuilt when one of its files changes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.regular_files import FileVersion, file_version

CHECK_INTERVAL = 1.0
"""Seconds between two checks of the files."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the certificates are (PEM); empty paths mean the system's authorities and no client certificate."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify: bool = True


class TlsContext:
    """The `ssl.SSLContext` of a cluster.

    A changed file leads to a new context, and thus to new connections. If a file cannot be read, for instance while it
    is being replaced, the previous context stays in use until the next check.

    Args:
        files: The paths of the certificates.
        clock: Measures the time since the last check.
        lazy: Build the context for the first request: most clusters without an https URL never need it.

    Raises:
        ConfigError: A file cannot be used when the object is created.
    """

    def __init__(self, files: TlsFiles, *, clock: Clock, lazy: bool = False) -> None:
        self._files = files
        self._clock = clock
        self._looked_at = clock.monotonic()
        self._stamp = _stamp(files)
        self._context: ssl.SSLContext | None = None
        if not lazy:
            self._context = self._build()

    def get(self) -> ssl.SSLContext:
        """Return the context for the next request.

        Raises:
            OSError: There is no context yet, and a file cannot be used.
        """
        if self._context is None:
            try:
                self._context = self._build()
            except ConfigError as error:
                raise OSError(str(error)) from None
        now = self._clock.monotonic()
        if now - self._looked_at >= CHECK_INTERVAL:
            self._looked_at = now
            self._reload()
        return self._context

    def _build(self) -> ssl.SSLContext:
        try:
            return _build(self._files)
        except (OSError, ValueError) as error:
            text = f"{_paths(self._files)}: {_reason(error)}; give readable PEM files that match"
            raise ConfigError(f"tls: {text}") from None

    def _reload(self) -> None:
        stamp = _stamp(self._files)
        if stamp == self._stamp:
            return
        try:
            self._context = _build(self._files)
        except (OSError, ValueError):
            return
        self._stamp = stamp


def _build(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.ca_file or None)
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.cert_file:
        context.load_cert_chain(files.cert_file, files.key_file or None)
    return context


def _stamp(files: TlsFiles) -> tuple[FileVersion, ...]:
    return tuple(file_version(path) for path in (files.ca_file, files.cert_file, files.key_file) if path)


def _paths(files: TlsFiles) -> str:
    return ", ".join(filter(None, (files.ca_file, files.cert_file, files.key_file)))


def _reason(error: Exception) -> str:
    """Return what is wrong with a file; OpenSSL's messages contain no secrets."""
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return str(reason or type(error).__name__)
