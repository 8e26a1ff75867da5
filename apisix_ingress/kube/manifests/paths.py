"""Distinguishes missing files from inaccessible ones. From Python 3.14 on, `Path.exists` returns False for both."""

from __future__ import annotations

from pathlib import Path


def exists(path: Path) -> bool:
    """Return whether a path exists, following links.

    Raises:
        OSError: It could not be determined: no access to a parent folder, or the name is too long.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: the path contains NUL
        return False
    return True
