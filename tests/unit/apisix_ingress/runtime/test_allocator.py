"""The allocator of the C library."""

import platform

from apisix_ingress.runtime.allocator import keep_large_blocks_apart


def test_glibc_can_keep_large_blocks_apart() -> None:
    assert keep_large_blocks_apart() or platform.libc_ver()[0] != "glibc"
