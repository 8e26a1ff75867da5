"""Objects and records made fit for strangers' eyes: for a bundle that people attach to a bug report.

What is masked: data of Secrets, what stands under a name that suggests a secret, code, and every text that is, or
holds, a value of a Secret, wherever it turns up. A value that nobody calls secret and no Secret holds is not known.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kube import Secret
from apisix_ingress.redaction import REDACTED, escape, is_secret_name, redact_text

SHORTEST = 4
"""A shorter value is no secret: it stands everywhere and is guessed anyway."""

SHORTEST_PART = 8
"""A value from here on is hidden inside longer texts too; a shorter one would blot out half of every line."""

PUBLIC = frozenset({"tls.crt", "ca.crt", "cert", "namespace", "ca"})
"""Keys of Secrets whose values everybody may see."""

_NAMES = re.compile(
    r"api-?_?key|secret|token|passw|credential|private|^auth(?:_|$|[A-Z])|_auth|csrf|authori[sz]ation|cookie|sasl|service_account|session"
    r"|^functions?$|^script$|filter_func|signature|salt|^keys$|_iv$|dsn$|webhook_url",
    re.IGNORECASE,
)
"""What suggests a secret beyond the names that logs hide; a bundle can afford to hide too much."""

_PLAIN = frozenset(
    {"secretRef", "secret_ref", "authentication", "authParameter", "hide_credentials", "secret_references"}
)
"""Names that only sound like it: they lead to the name of a Secret, or to more fields."""

_NAMED = ("Name", "_name", "Namespace", "_namespace")
"""How the names of fields end that hold the name of an object."""

_LEAD = frozenset({"apiVersion", "kind", "name", "namespace"})


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
        clean = _named(document)
        text = json.dumps(clean, ensure_ascii=False)
        # Of thousands of values few are anywhere.
        found = [form for form in self._parts if form in text or json.dumps(form)[1:-1] in text]
        return self._without(clean, found)

    def _without(self, value: Any, parts: list[str]) -> Any:
        if isinstance(value, dict):
            return {_cut(key, parts): self._without(item, parts) for key, item in value.items()}
        if isinstance(value, list):
            return [self._without(item, parts) for item in value]
        if isinstance(value, str):
            return REDACTED if value in self._whole else _cut(value, parts)
        return value


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


def _named(value: Any, name: str = "") -> Any:
    """Return a copy without what stands under names of secrets, and without what looks like one."""
    if isinstance(value, Mapping):
        return {_text(str(key)): _under(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_named(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _under(name: str, value: Any) -> Any:
    is_plain = name in _PLAIN or name.endswith(_NAMED)
    is_hidden = not is_plain and (is_secret_name(name) or _NAMES.search(name) is not None)
    if not is_hidden or value in (None, "", [], {}) or isinstance(value, bool):
        return _named(value)
    if isinstance(value, Mapping) and value.keys() <= _LEAD:
        return _named(value)  # a reference to a Secret, no secret
    return REDACTED


def _text(text: str) -> str:
    """Return a text without what looks like a secret; JSON inside it is looked through."""
    if text[:1] in ("{", "[") and (inner := _parsed(text)) is not None:
        return json.dumps(_named(inner), ensure_ascii=False)
    return escape(redact_text(text), keep="\n\t")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
