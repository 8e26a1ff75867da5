"""Reads the files that credentials consist of, up to a size limit. Messages name the file, never its content."""

from __future__ import annotations

from pathlib import Path

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.regular_files import read_regular

_LARGEST = 10 * 2**20


def read_file(path: Path, where: str) -> bytes:
    """Return the content of a file.

    Args:
        path: The file.
        where: What refers to the file, for the message.

    Raises:
        ConfigError: It cannot be read or is larger than 10 MB.
    """
    try:
        content = read_regular(path, _LARGEST)
    except OSError as error:
        raise ConfigError(f"{where}: {path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{where}: the path contains a NUL character: correct the path") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"{where}: {path}: larger than {_LARGEST // 2**20} MB: check the path")
    return content


def read_token(path: Path) -> str:
    """Return the token in a file, without the line break at its end.

    Raises:
        ConfigError: The file cannot be read, or contains anything but one token.
    """
    token = read_file(path, "token file").decode("ascii", "replace").strip()
    if not token or not token.isprintable() or any(character.isspace() for character in token):
        raise ConfigError(f"token file {path}: must contain one token and nothing else")
    return token
