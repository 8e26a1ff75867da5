"""Hides known secret values anywhere in documents; `redaction` hides by name, place and pattern."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from apisix_ingress.model.objects import Secret

REDACTED = "[redacted]"

SHORTEST = 4
"""Length in characters. A shorter value is not hidden inside other texts: it is too common and easily guessed."""

PUBLIC_KEYS = frozenset({"tls.crt", "ca.crt", "cert", "namespace", "ca"})
"""Keys of Secrets whose values are public."""

_SHORTEST_LINE = 16
_PEM_MARK = "-----"


class ValueMask:
    """Replaces secret values in texts and numbers by `REDACTED`.

    Args:
        values: The values. Each is hidden where it is the entire text or number.
        inside_from: Length in characters from which a value is also hidden inside longer texts: a short value
            occurs in many unrelated texts.
    """

    def __init__(self, values: Iterable[str], *, inside_from: int = SHORTEST) -> None:
        self._whole = frozenset(values) - {""}
        # Longest first, so that a value that contains another one is hidden entirely.
        self._parts = sorted((value for value in self._whole if len(value) >= inside_from), key=len, reverse=True)

    def within(self, document: Any) -> ValueMask:
        """Return a mask with the values that occur in a document of JSON: of thousands, few do."""
        text = json.dumps(document, ensure_ascii=False)
        mask = ValueMask(())
        mask._whole = self._whole
        mask._parts = [value for value in self._parts if any(form in text for form in _in_json(value))]
        return mask

    def __call__(self, value: Any) -> Any:
        """Return a JSON value other than a list or mapping, with secret parts masked."""
        if value is None or isinstance(value, bool):
            return value
        if str(value) in self._whole:
            return REDACTED
        if isinstance(value, str):
            for part in self._parts:
                value = value.replace(part, REDACTED)
        return value


def secret_values(secrets: Iterable[Secret]) -> Iterator[str]:
    """Yield the secret values of Secrets: whole, stripped, and the lines of keys in PEM."""
    for name, content in (each for secret in secrets for each in secret.data.items()):
        if name in PUBLIC_KEYS:
            continue
        text = content.decode("utf-8", "replace")
        yield from {text, text.strip()}
        lines = text.strip().splitlines()
        if len(lines) > 1:
            yield from (line.strip() for line in lines if len(line) > _SHORTEST_LINE and _PEM_MARK not in line)


def encoded_forms(value: str) -> tuple[str, ...]:
    """Return the forms in which a value occurs: plain, as base64, in JSON, in a URL."""
    encoded = base64.b64encode(value.encode()).decode()
    return (value, encoded, encoded.rstrip("="), json.dumps(value)[1:-1], quote(value, safe=""))


def _in_json(value: str) -> Iterator[str]:
    """Yield how a value occurs in JSON, and in JSON inside of JSON."""
    for _ in range(3):
        yield value
        value = json.dumps(value, ensure_ascii=False)[1:-1]
