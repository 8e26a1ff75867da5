"""Names with the CRC-32 of other names: anyone can forge them, so ids must handle them."""

from __future__ import annotations

import zlib
from functools import cache

FREE = 12
"""Letters that are chosen: of each three bits are free, since h to o are 0x68 to 0x6f. CRC-32 is linear in them."""


def forge(target: str, prefix: str, suffix: str = "", *, number: int = 0) -> str:
    """Return a name with the CRC-32 of `target`; takes microseconds.

    Args:
        target: The name to imitate.
        prefix: Its beginning.
        suffix: Its end.
        number: Which one of them, from 0 on.
    """
    start = f"{prefix}{number}" if number else prefix
    plain = f"{start}{'h' * FREE}{suffix}"
    missing, chosen = zlib.crc32(plain.encode()) ^ zlib.crc32(target.encode()), 0
    for lead, (effect, bits) in _solved(len(suffix)).items():
        if missing >> lead & 1:
            missing, chosen = missing ^ effect, chosen ^ bits
    letters = "".join(chr(ord("h") + (chosen >> 3 * place & 7)) for place in range(FREE))
    return f"{start}{letters}{suffix}"


@cache
def _solved(tail: int) -> dict[int, tuple[int, int]]:
    """Return by bit of the CRC, the highest first, what sets it and none above it: its effect, and the bits to choose.

    Args:
        tail: How many characters follow the letters.
    """
    base, rows = bytes(FREE + tail), dict[int, tuple[int, int]]()
    for bit in range(3 * FREE):
        changed = bytearray(base)
        changed[bit // 3] = 1 << bit % 3
        effect, bits = zlib.crc32(changed) ^ zlib.crc32(base), 1 << bit
        while effect and (lead := effect.bit_length() - 1) in rows:
            effect, bits = effect ^ rows[lead][0], bits ^ rows[lead][1]
        if effect:
            rows[effect.bit_length() - 1] = (effect, bits)
    assert len(rows) == 32
    return dict(sorted(rows.items(), reverse=True))
