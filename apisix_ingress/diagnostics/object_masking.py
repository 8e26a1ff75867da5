"""Masks secrets in objects and records for a support bundle, which people attach to bug reports.

It hides the data of Secrets, values whose name suggests a secret, code, and every text that is or contains a value of
a Secret. A value without such a name that is not in a Secret is not recognized.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.secrets.redaction import masked
from apisix_ingress.model.secrets.value_mask import REDACTED, SHORTEST, ValueMask, encoded_forms, secret_values

SHORTEST_PART = 8
"""Length in characters. A shorter value is hidden only if it is the whole text."""


class Mask:
    """Hides secrets in documents.

    Args:
        secrets: Secrets whose values are hidden wherever they occur.
        others: Further values, such as admin keys.
    """

    def __init__(self, secrets: Iterable[Secret] = (), others: Iterable[str] = ()) -> None:
        values = {*secret_values(secrets), *others}
        forms = (form for value in values if len(value) >= SHORTEST for form in encoded_forms(value))
        self._values = ValueMask(forms, inside_from=SHORTEST_PART)

    def document(self, document: Any) -> Any:
        """Return a copy without secrets."""
        return masked(document, leaf=self._values.within(document))


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
