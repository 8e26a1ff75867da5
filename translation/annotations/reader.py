"""Reads annotations: strings, flags, lists and numbers, and reports invalid ones."""

from __future__ import annotations

from collections.abc import Mapping

from translation.core.context import Context
from translation.core.text_checks import check_text

PREFIX = "k8s.apisix.apache.org/"
FOREIGN = ("nginx.ingress.kubernetes.io/", "nginx.org/", "nginx.com/", "haproxy.org/", "traefik.ingress.kubernetes.io/")
"""Prefixes of other controllers, whose annotations are often copied with an Ingress."""
_MOST_DIGITS = 18
"""The largest integer that every JSON parser preserves."""


class Annotations:
    """The annotations of one Ingress; nothing is shared between Ingresses.

    Args:
        scope: Where problems are reported.
        values: All annotations of the object.
    """

    def __init__(self, scope: Context, values: Mapping[str, str]) -> None:
        self.scope = scope
        self._values = values

    def text(self, name: str, *, block: bool = False) -> str:
        """Return the value without surrounding white space; empty if absent. It may have several lines if `block`."""
        text = self._values.get(PREFIX + name, "").strip()
        if text:
            check_text(self.scope, text, self.field(name), block=block)
        return text

    def verbatim(self, name: str) -> str:
        """Return the value unchanged, with white space and line breaks; empty if absent."""
        text = self._values.get(PREFIX + name, "")
        check_text(self.scope, text, self.field(name), block=True)
        return text

    def flag(self, name: str) -> bool:
        """Return whether the value is `true`, the only accepted spelling."""
        text = self.text(name)
        if text not in ("", "true", "false"):
            self.warn(name, f"{text!r} is treated as false; write true or false in lower case")
        return text == "true"

    def items(self, name: str) -> list[str]:
        """Return the items of a comma-separated list, without white space and empty items."""
        found = [item for part in self.text(name, block=True).split(",") if (item := part.strip())]
        for item in found:
            check_text(self.scope, item, self.field(name))
        return found

    def guard(self, name: str) -> list[str]:
        """Return the items of a list that protects access. A value without items is an error: it opens nothing."""
        found = self.items(name)
        if not found and self._values.get(PREFIX + name):
            self.error(name, "is empty; set a value, or remove the annotation")
        return found

    def number(self, name: str) -> int | None:
        """Return a non-negative integer, or None; an invalid value is ignored with a warning."""
        text = self.text(name)
        digits = text.removeprefix("+")
        if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
            return int(digits)
        if text:
            self.warn(name, f"{text!r} is ignored: it must be an integer")
        return None

    def warn(self, name: str, message: str) -> None:
        """Report a value that is ignored or interpreted differently."""
        self.scope.warn("InvalidAnnotation", self.field(name), message)

    def error(self, name: str, message: str) -> None:
        """Report a value without which the Ingress must not be published."""
        self.scope.error("InvalidAnnotation", self.field(name), message)

    @staticmethod
    def field(name: str) -> str:
        """Return the path of an annotation in the object."""
        return f"metadata.annotations[{PREFIX}{name}]"
