"""One problem code, and the effects that many codes share."""

from __future__ import annotations

from dataclasses import dataclass

_OF_GATEWAYS = "AIX11"
"""The codes of states in gateways, which `lint` cannot report."""


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake.

    Attributes:
        number: e.g. `AIX0101`.
        word: The code of problems, e.g. `ServiceNotFound`.
        title: A sentence without the full stop.
        effect: What happens to the object.
        remedy: What to do.
    """

    number: str
    word: str
    title: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        """Render as messages show it: `AIX0101 ServiceNotFound`."""
        return f"{self.number} {self.word}"

    @property
    def explanation(self) -> str:
        """The effect, the remedy and how to suppress the code, as Markdown without a final newline."""
        text = f"**Effect.** {self.effect}\n\n**Remedy.** {self.remedy}"
        if self.number.startswith(_OF_GATEWAYS):
            return text
        suppress = f"`--suppress {self.number}`, or, for one object, `--suppress '{self.number}=KIND NAMESPACE/NAME'`"
        return f"{text}\n\nTo suppress it in `lint`: {suppress}."


KEPT = "This version of the object is not published; the last valid version, if any, stays in the gateways."
FALSE = "The object is published, and its condition is False."
WARNED = "The object is published and its condition is True; `lint`, `translate` and the log report the problem."
LINTED = "The object is published and its condition is True; only `lint` and the webhook report it."
GATEWAY = "The gateway rejects the record, and the condition of the object is False."
WITHDRAWN = "The object is not published, and its records are removed from the gateways."
