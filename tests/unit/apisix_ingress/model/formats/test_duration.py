"""Durations as Go writes them, in seconds."""

import math

import pytest

from apisix_ingress.model.formats.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("500ms", 0.5),
        ("5s", 5),
        ("1h", 3600),
        ("1m30s", 90),
        ("1h2m3s4ms", 3723.004),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("2.s", 2),
        ("100us", 1e-4),
        ("100µs", 1e-4),
        ("1ns", 1e-9),
        ("0", 0),
        ("30", 30),
        (" 5s ", 5),
        (7, 7),
        (0.25, 0.25),
    ],
)
def test_duration_becomes_seconds(text: str | float, want: float) -> None:
    assert math.isclose(parse_duration(text), want)


LONG = ("9" * 400, "9" * 400 + "s")


@pytest.mark.parametrize(
    "text",
    ["", "5 s", "s", "5x", "-5s", "1e3s", "5s,", *LONG, "\u0665s", -1, math.inf, math.nan, True],
)
def test_invalid_durations_are_rejected(text: str | float) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


def test_value_of_another_type_is_refused_by_its_type() -> None:
    with pytest.raises(ValueError, match="not list"):
        parse_duration(["5s"])  # type: ignore[arg-type]  # what a YAML file may hold
