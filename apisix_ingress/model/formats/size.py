"""Sizes as Kubernetes writes them: ``512KiB`` or ``512Ki``, ``256MiB``, ``1GiB``; always bytes inside the program."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import ValuePattern

_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = ValuePattern(r"([0-9]{1,12})(?:([KMG])i(?:B)?)?")


def parse_size(value: str | int) -> int:
    """Return the bytes of a size, or of a plain number of bytes (as text, too).

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"a size is a text such as 512KiB or 256MiB, not {type(value).__name__}")
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{value!r} is not a size; write for instance 512KiB, 256MiB or 1GiB")
    return int(found[1]) * _BYTES[found[2]]


def written_size(size: int) -> str:
    """Return a number of bytes in the largest unit that has no fraction."""
    for unit in ("G", "M", "K"):
        if size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}iB"
    return f"{size} bytes"
