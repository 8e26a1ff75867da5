"""Rows of the verdict table of annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apisix_ingress.model.formats.patterns import LONGEST_VALUE
from translation.nginx.tables.checks import Check
from translation.nginx.tables.values import Outcome, Values
from translation.nginx.tables.verdicts import EXACT, Verdict, no_effect, refused

Judge = Callable[[str], Verdict]
Wrong = Outcome | Callable[[str], Outcome]
Within = Callable[[Values], Verdict | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One annotation.

    Attributes:
        name: Without the prefix.
        group: The heading under which documents list it.
        verdict: On a valid value; a function if it depends on the value.
        valid: Whether a value is valid.
        wrong: The outcome of an invalid value; a function if it depends on the value.
        needs: Annotations of which at least one is required for this one to have an effect.
        if_wrong: The verdict on an invalid value, if it differs from `wrong`.
        within: The verdict on a valid value that depends on other annotations; None if none of them matters.
        longest: Maximum length of a value in characters; a longer one is not valid.
    """

    name: str
    group: str
    verdict: Verdict | Judge = EXACT
    valid: Check = bool
    wrong: Wrong = "default"
    needs: tuple[str, ...] = ()
    if_wrong: Verdict | None = None
    within: Within | None = None
    longest: int = LONGEST_VALUE

    def judge(self, value: str) -> Verdict:
        """Return the verdict on a value."""
        outcome = self.outcome(value)
        if outcome is None:
            return self.verdict(value.strip()) if callable(self.verdict) else self.verdict
        if len(value) > self.longest:
            return refused(f"The value is longer than {self.longest} characters; shorten it.", protects=True)
        if outcome == "default" and not value.strip():
            return no_effect("It is empty, so the default applies, as in ingress-nginx.")
        return self.if_wrong if self.if_wrong and value else _WRONG[outcome]

    def outcome(self, value: str) -> Outcome | None:
        """Return the outcome of an invalid value; None for a valid one."""
        if len(value) <= self.longest and self.valid(value):
            return None
        return self.wrong(value) if callable(self.wrong) else self.wrong


_WRONG: Mapping[Outcome, Verdict] = {
    "default": no_effect("The value is not valid, so the default applies, as in ingress-nginx."),
    "closed": Verdict("exact", "The value is not valid: its paths respond with 503, as in ingress-nginx.", True),
    "refused": Verdict("exact", "The value is not valid: the whole Ingress is refused, as in ingress-nginx.", True),
}
