"""Annotations of an Ingress that do nothing: nobody asked for them while it was translated."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from translation.annotations.reader import PREFIX

FOREIGN = ("nginx.ingress.kubernetes.io/", "nginx.org/", "haproxy.org/", "traefik.ingress.kubernetes.io/")
"""Prefixes of other controllers, whose annotations are often carried over with an Ingress."""


class AskedAnnotations(dict[str, str]):
    """Annotations that note which of them were asked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.asked: dict[str, None] = {}

    def get(self, key: str, default: str | None = None, /) -> str | None:  # type: ignore[override]  # keys are texts
        """Return a value and note the key."""
        self.asked[key] = None
        return super().get(key, default)


def useless_annotations(annotations: AskedAnnotations) -> Iterator[str]:
    """Yield a sentence for each annotation that does nothing; all of them are known by their prefix alone."""
    for key in sorted(annotations):
        if key.startswith(PREFIX) and key not in annotations.asked:
            nearest = difflib.get_close_matches(key, annotations.asked, n=1, cutoff=0.9)
            hint = f"did you mean {nearest[0]}?" if nearest else "it is unknown, or what it belongs to is not set"
            yield f"annotation {key} does nothing: {hint}"
        elif key.startswith(FOREIGN):
            yield f"annotation {key} does nothing: it is for another controller"
