"""Suggestions for mistyped words: the known word that is most similar."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST = 253
"""Maximum length of a word that is compared, in characters: that of a host."""

MOST = 5_000
"""Maximum number of known words that are compared: some 50 ms."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that names the most similar known word, or an empty string if none is similar."""
    if not word or len(word) > LONGEST:
        return ""
    original = {each.lower(): each for each in islice(known, MOST)}
    near = get_close_matches(word.lower(), original, n=1, cutoff=0.6)
    return f"did you mean {original[near[0]]}?" if near else ""
