"""Rows of the verdict table of annotations, and the checks of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from translation.nginx.tables.values import Outcome, boolean, integer, networks, size
from translation.nginx.tables.verdicts import EXACT, Verdict, no_effect

Check = Callable[[str], bool]
Judge = Callable[[str], Verdict]


@dataclass(frozen=True, slots=True)
class Row:
    """One annotation.

    Attributes:
        name: Without the prefix.
        group: The heading under which documents list it.
        verdict: On a valid value; a function if it depends on the value.
        valid: Whether a value is valid.
        wrong: The outcome of an invalid value.
        needs: Annotations of which at least one is required for this one to have an effect.
        if_wrong: The verdict on an invalid value, if it differs from `wrong`.
    """

    name: str
    group: str
    verdict: Verdict | Judge = EXACT
    valid: Check = bool
    wrong: Outcome = "default"
    needs: tuple[str, ...] = ()
    if_wrong: Verdict | None = None

    def judge(self, value: str) -> Verdict:
        """Return the verdict on a value."""
        if not self.valid(value):
            if self.if_wrong and value:
                return self.if_wrong
            return (
                _WRONG[self.wrong] if value else no_effect("It is empty, so the default applies, as in ingress-nginx.")
            )
        return self.verdict(value) if callable(self.verdict) else self.verdict

    def outcome(self, value: str) -> Outcome | None:
        """Return the outcome of an invalid value; None for a valid one."""
        return None if self.valid(value) else self.wrong


_WRONG: Mapping[Outcome, Verdict] = {
    "default": no_effect("The value is not valid, so the default applies, as in ingress-nginx."),
    "closed": Verdict("exact", "The value is not valid: its paths respond with 503, as in ingress-nginx.", True),
    "refused": Verdict("exact", "The value is not valid: the whole Ingress is refused, as in ingress-nginx.", True),
}


def is_bool(text: str) -> bool:
    """Return whether a text is a boolean."""
    return boolean(text) is not None


def is_int(text: str) -> bool:
    """Return whether a text is an integer."""
    return integer(text) is not None


def is_natural(text: str) -> bool:
    """Return whether a text is a non-negative number."""
    found = integer(text)
    return found is None or found >= 0


def at_least(least: int) -> Check:
    """Return a check that a number is not below the minimum; texts that are not numbers pass."""

    def valid(text: str) -> bool:
        found = integer(text)
        return found is None or found >= least

    return valid


def empty_or(check: Check) -> Check:
    """Return a check that also accepts the empty text."""
    return lambda text: not text or check(text)


def like(pattern: str) -> Check:
    """Return a check that the whole text matches a pattern."""
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def one_of(*words: str) -> Check:
    """Return a check that a text is one of some words."""
    return lambda text: text in words


def are_networks(text: str) -> bool:
    """Return whether a text is a list of networks."""
    return networks(text) is not None


def is_size(text: str) -> bool:
    """Return whether a text is a size of nginx."""
    return size(text) is not None


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE")

WORDS = like(r"[A-Za-z0-9_.~/\- ]*")
NAMES = like(r"[A-Za-z0-9]([A-Za-z0-9_.\-/]*[A-Za-z0-9])?")
URLS = like(r"[A-Za-z0-9_.~/:?&=%#\-]*")
VARIABLES = like(r"[A-Za-z0-9_.~/:\-${}]*")
VARIABLES_AND_SPACES = like(r"[A-Za-z0-9_.~/:\-${} ]*")
ALIASES = like(r"[A-Za-z0-9_.*,~^\[\]()+?\\$|\-{}]*( ?, ?[A-Za-z0-9_.*~^\[\]()+?\\$|\-{}]*)*")
CODES = like(r"[345][0-9]{2}(,[345][0-9]{2})*")
TARGETS = like(r"[A-Za-z0-9_.~/:\-${}]+")
ROOTS = like(r"/[A-Za-z0-9_.~/\-]*")
