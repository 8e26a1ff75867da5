"""The admin key of a cluster, and the settings that messages name when its address or key is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import SecretStr

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.regular_files import FileVersion, file_version


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of settings, for error messages."""

    url: str = "admin_url"
    key: str = "admin_key"
    largest_list: str = "sync.largest_list"


SETTINGS = Fields()


class AdminKey:
    """The admin key, read again when its file changes.

    Args:
        read: Returns the key as it is now; raises ConfigError.
        path: The file it comes from; empty if it cannot change.
    """

    def __init__(self, read: Callable[[], SecretStr], path: str = "") -> None:
        self._read = read
        self._path = path
        # The versions last read, and last tried: a file without a valid key is not read again and again.
        self._stamp = self._tried = self._now()
        self._key = read()

    @property
    def secret(self) -> str:
        """The key as last read."""
        return self._key.get_secret_value()

    def changed(self) -> bool:
        """Return whether the file has changed since the last attempt to read it."""
        return self._now() != self._tried

    def refresh(self) -> bool:
        """Read the key again if its file has changed; return whether the key is a different one now."""
        stamp = self._tried = self._now()
        if stamp == self._stamp:
            return False
        try:
            key = self._read()
        except ConfigError:
            return False  # the file is being replaced; the next rejected request tries again
        self._stamp = stamp
        changed = key != self._key
        self._key = key
        return changed

    def _now(self) -> FileVersion:
        return file_version(self._path) if self._path else FileVersion()
