"""Durations as users write them."""

import pytest

from crds.v2.common import duration_seconds


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0.0),
        ("1s", 1.0),
        ("500ms", 0.5),
        ("300ms", 0.3),
        ("1m30s", 90.0),
        ("72h3m0.5s", 259380.5),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("250\u03bcs", 0.00025),
        ("7ns", 0.000000007),
        ("-5s", -5.0),
        ("+5s", 5.0),
    ],
)
def test_go_duration_becomes_seconds(text: str, want: float) -> None:
    assert duration_seconds(text) == want


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5s ", "1d", "1,5s", "--5s", "1h-5s", "٣s", "5S"])
def test_values_that_go_rejects_are_not_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        duration_seconds(text)
