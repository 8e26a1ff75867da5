"""Sizes: read and written as Kubernetes does."""

import pytest

from apisix_ingress.model.formats.size import parse_size, written_size


@pytest.mark.parametrize(
    ("text", "want", "written"),
    [
        ("1", 1, "1 bytes"),
        (1000, 1000, "1000 bytes"),
        ("512KiB", 2**19, "512KiB"),
        (" 512Ki ", 2**19, "512KiB"),
        ("256MiB", 2**28, "256MiB"),
        ("1024Mi", 2**30, "1GiB"),
        ("1536MiB", 1536 * 2**20, "1536MiB"),
    ],
)
def test_size_is_read_and_written(text: str | int, want: int, written: str) -> None:
    assert (parse_size(text), written_size(want)) == (want, written)


@pytest.mark.parametrize("value", ["", "MiB", "1MB", "1.5MiB", "-1", "1 MiB", "1mib", "9" * 13, True, 1.5, None])
def test_invalid_sizes_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(value)  # type: ignore[arg-type]
