"""Objects and records made fit for strangers' eyes: for a bundle that people attach to a bug report.

What is masked: data of Secrets, what stands under a name that suggests a secret, code, and every text that is, or
holds, a value of a Secret, wherever it turns up. A value that nobody calls secret and no Secret holds is not known.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.secrets.redaction import REDACTED, masked

SHORTEST = 4
"""A shorter value is no secret: it stands everywhere and is guessed anyway."""

SHORTEST_PART = 8
"""A value from here on is hidden inside longer texts too; a shorter one would blot out half of every line."""

PUBLIC = frozenset({"tls.crt", "ca.crt", "cert", "namespace", "ca"})
"""Keys of Secrets whose values everybody may see."""


class Mask:
    """Hides secrets in documents.

    Args:
        secrets: Whose values are hidden wherever they are.
        others: Further values, such as admin keys.
    """

    def __init__(self, secrets: Iterable[Secret] = (), others: Iterable[str] = ()) -> None:
        values = {text for secret in secrets for text in _values(secret)} | set(others)
        forms = dict.fromkeys(form for value in values if len(value) >= SHORTEST for form in _forms(value))
        self._whole = frozenset(forms)
        # Longest first, so that a secret which holds another one is hidden as a whole.
        self._parts = sorted((form for form in forms if len(form) >= SHORTEST_PART), key=len, reverse=True)

    def document(self, document: Any) -> Any:
        """Return a copy without secrets."""
        text = json.dumps(document, ensure_ascii=False)
        # Of thousands of values few are anywhere.
        parts = [form for form in self._parts if any(written in text for written in _written(form))]

        def leaf(value: Any) -> Any:
            if isinstance(value, str):
                return REDACTED if value in self._whole else _cut(value, parts)
            return REDACTED if not isinstance(value, bool) and str(value) in parts else value

        return masked(document, leaf=leaf)


def masked_secret(raw: JsonObject) -> JsonObject:
    """Return a Secret as a manifest with its keys, each value hidden."""
    meta = raw.get("metadata") or {}
    keys = sorted({**(raw.get("data") or {}), **(raw.get("stringData") or {})})
    hidden = base64.b64encode(REDACTED.encode()).decode()
    shown = {name: meta[name] for name in ("name", "namespace", "creationTimestamp", "resourceVersion") if name in meta}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": shown,
        "type": raw.get("type", "Opaque"),
        "data": dict.fromkeys(keys, hidden),
    }


def _cut(text: str, parts: list[str]) -> str:
    for part in parts:
        text = text.replace(part, REDACTED)
    return text


def _values(secret: Secret) -> Iterator[str]:
    """Yield what a Secret hides, whole and line by line: a key in PEM may be cut out of it."""
    for name, content in secret.data.items():
        if name not in PUBLIC:
            text = content.decode("utf-8", "replace").strip()
            yield text
            lines = text.splitlines()
            if len(lines) > 1:
                yield from (line.strip() for line in lines if len(line) > 16 and "-----" not in line)


def _forms(value: str) -> tuple[str, ...]:
    """Return how a value may be written: plain, as base64, in JSON, in a URL."""
    encoded = base64.b64encode(value.encode()).decode()
    return (value, encoded, encoded.rstrip("="), json.dumps(value)[1:-1], quote(value, safe=""))


def _written(form: str) -> Iterator[str]:
    """Yield how a form stands in JSON, and in JSON inside of JSON."""
    for _ in range(3):
        yield form
        form = json.dumps(form, ensure_ascii=False)[1:-1]
