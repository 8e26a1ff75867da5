"""How much work the weights of nodes are for a gateway."""

from typing import Any

import pytest

from translation.safety.weights import shares


def nodes(*weights: object) -> list[dict[str, object]]:
    return [{"host": f"10.0.0.{index}", "port": 80, "weight": weight} for index, weight in enumerate(weights)]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (nodes(), 0),
        (nodes(10**9), 0),
        (nodes(*[100] * 5000), 0),
        (nodes(0, 0), 0),
        (nodes(100, 50), 1),
        (nodes(10**9, 1), 10**9 - 1),
        (nodes(10**9, 10**8), 9),
        (nodes(10**9, 0), 0),
        (nodes(1e9, 1), 10**9 - 1),
        ({"10.0.0.1:80": 10**9, "10.0.0.2:80": 1}, 10**9 - 1),
        (nodes(10**9, 1, "x"), 0),
        (nodes(10**9, 1, []), 0),
        ([1, 2], 0),
        ("text", 0),
        (None, 0),
        ([{"host": "a"}, {"host": "b"}], 0),
    ],
)
def test_weights_count_after_division_by_their_common_divisor(given: Any, want: int) -> None:
    assert shares(given) == want
