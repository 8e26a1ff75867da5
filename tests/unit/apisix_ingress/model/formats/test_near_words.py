"""Suggestions for mistyped words."""

import pytest

from apisix_ingress.model.formats.near_words import did_you_mean

KNOWN = ("ApisixRoute", "Ingress", "lint", "shop.example.org")


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("apisixrotue", "did you mean ApisixRoute?"),
        ("lnit", "did you mean lint?"),
        ("shop.exmaple.org", "did you mean shop.example.org?"),
        ("zzz", ""),
        ("", ""),
        ("l" * 254, ""),
    ],
)
def test_the_most_similar_word_is_suggested(word: str, want: str) -> None:
    assert did_you_mean(word, KNOWN) == want
