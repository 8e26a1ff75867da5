"""Whether something is at a path. What can't be looked at is no absence: `Path.exists` says so from Python 3.14 on."""

from __future__ import annotations

from pathlib import Path


def exists(path: Path) -> bool:
    """Say whether something is at a path, at the end of a link.

    Raises:
        OSError: It can't be told: a folder on the way is closed to this process, the name is too long.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL in it
        return False
    return True
