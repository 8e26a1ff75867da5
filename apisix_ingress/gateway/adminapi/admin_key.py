"""Where the Admin API of a cluster is, with which key, and where people put that right. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import SecretStr

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.regular_files import FileVersion, file_version


@dataclass(frozen=True, slots=True)
class Fields:
    """What people have to change when an address or a key is wrong, as messages name it."""

    url: str = "admin_url"
    key: str = "admin_key"
    largest_list: str = "sync.largest_list"


SETTINGS = Fields()


class AdminKey:
    """The admin key, read again when its file changes.

    Args:
        read: Returns the key as it is now; raises ConfigError.
        path: The file it comes from; empty if it can't change.
    """

    def __init__(self, read: Callable[[], SecretStr], path: str = "") -> None:
        self._read = read
        self._path = path
        # Of what was read, and of what was tried to be read: a file without a key is not tried without end.
        self._stamp = self._tried = self._now()
        self._key = read()

    @property
    def secret(self) -> str:
        """The key as last read."""
        return self._key.get_secret_value()

    def changed(self) -> bool:
        """Say whether the file is another one than when it was last tried to be read."""
        return self._now() != self._tried

    def refresh(self) -> bool:
        """Read the key again if its file changed; say whether the key is another one now."""
        stamp = self._tried = self._now()
        if stamp == self._stamp:
            return False
        try:
            key = self._read()
        except ConfigError:
            return False  # the file is being replaced; the next refusal looks again
        self._stamp = stamp
        changed = key != self._key
        self._key = key
        return changed

    def _now(self) -> FileVersion:
        return file_version(self._path) if self._path else FileVersion()
