"""Reads files that users configure, and detects changes of files.

It reads only regular files, and only up to a limit: opening a pipe or a device may block forever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

_KINDS = (
    (stat.S_ISDIR, "a folder, not a file"),
    (stat.S_ISFIFO, "a pipe, not a regular file"),
    (stat.S_ISSOCK, "a socket, not a regular file"),
    (stat.S_ISCHR, "a device, not a regular file"),
    (stat.S_ISBLK, "a device, not a regular file"),
)


class FileVersion(NamedTuple):
    """What changes when a file is written or replaced; all zero for a file that cannot be examined."""

    modified_ns: int = 0
    size: int = 0
    inode: int = 0


def file_version(path: Path | str) -> FileVersion:
    """Return the version of a file; for a symbolic link, of its target."""
    try:
        found = os.stat(path)
    except OSError:
        return FileVersion()
    return FileVersion(found.st_mtime_ns, found.st_size, found.st_ino)


def read_regular(path: Path, largest: int) -> bytes:
    """Return the content of a regular file. If the file is larger than `largest`, return `largest` + 1 bytes.

    Raises:
        OSError: The file cannot be read or is not a regular file; `strerror` says which.
    """
    _check(path.stat())
    # It may have been replaced since, so open it without blocking and check it again.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        _check(os.fstat(file.fileno()))
        return file.read(largest + 1)


def _check(found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kind = next((text for matches, text in _KINDS if matches(found.st_mode)), "not a regular file")
    raise OSError(errno.EINVAL, kind)
