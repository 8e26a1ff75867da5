"""Annotations of an Ingress without effect: they were not read while it was translated.

The webhook reports them as warnings, `lint` as findings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from apisix_ingress.model.problem import Problem
from translation.annotations.reader import FOREIGN, PREFIX

_ALIKE = 0.8


_EVERY_CLIENT = "0.0.0.0/0,::/0"
"""The value that cert-manager sets on the Ingresses of its challenges; it allows every client."""


class TrackedAnnotations(dict[str, str]):
    """Annotations that record which of them were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.keys_read: dict[str, None] = {}

    def get(self, key: str, default: str | None = None, /) -> str | None:  # type: ignore[override]  # keys are texts
        """Return a value and record the key."""
        self.keys_read[key] = None
        return super().get(key, default)


def useless_annotations(annotations: TrackedAnnotations) -> Iterator[Problem]:
    """Yield a warning for each annotation without effect: own ones that were not read, and those of other controllers.

    Nothing is reported for own annotations if the translation failed before it read them.
    """
    known = [name.removeprefix(PREFIX) for name in annotations.keys_read if name.startswith(PREFIX)]
    for name in sorted(annotations):
        path = f"metadata.annotations[{name}]"
        if name.startswith(FOREIGN):
            if name.endswith("/whitelist-source-range") and annotations[name] == _EVERY_CLIENT:
                continue
            message = "ignored: annotation of another controller; use the equivalent annotation or plugin, or remove it"
            yield Problem("ForeignAnnotation", message, path, "warning")
        elif known and name.startswith(PREFIX) and name not in annotations.keys_read:
            yield Problem("UnknownAnnotation", f"has no effect: {_advice(name, known)}", path, "warning")


def _advice(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1, cutoff=_ALIKE)
    return f"did you mean {PREFIX}{near[0]}?" if near else "it is unknown, or the annotation it depends on is not set"
