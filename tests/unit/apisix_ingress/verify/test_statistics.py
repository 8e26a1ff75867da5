"""Fisher's exact test, compared with independently computed values, and its results for samples of backends."""

import random

import pytest

from apisix_ingress.verify.statistics import fisher, shifted


@pytest.mark.parametrize(
    ("table", "want"),
    [((8, 2, 1, 5), 0.03496503), ((3, 1, 1, 3), 0.48571429), ((0, 10, 10, 0), 1.0825e-05), ((5, 5, 5, 5), 1.0)],
)
def test_p_values_equal_published_values(table: tuple[int, int, int, int], want: float) -> None:
    assert fisher(*table) == pytest.approx(want, rel=1e-4)


def test_share_that_moved_is_named() -> None:
    assert shifted(["a"] * 180 + ["b"] * 20, ["a"] * 100 + ["b"] * 100) == ["a", "b"]
    assert shifted(["a", "b"] * 15, ["a"] * 30) == ["a", "b"]


def test_equal_weights_are_not_called_different() -> None:
    source = random.Random(0)
    draws = [[source.choices("ab", (9, 1), k=200) for _ in range(2)] for _ in range(500)]
    assert [pair for pair in draws if shifted(*pair)] == []
