"""Bodies of records for display: without private keys, credentials and values from Secrets.

A value is masked because of its name and plugin (code as well), because of the pattern of its text, or because the
Secrets that the record was generated from contain it, whatever the stores contain now. No plugin value of a consumer is
shown at all, nor of an object that cannot be translated.
"""

from __future__ import annotations

from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.records import Record
from apisix_ingress.model.secrets.fields import place_of
from apisix_ingress.model.secrets.redaction import blank, escape, masked, redact_text
from apisix_ingress.model.secrets.value_mask import REDACTED, ValueMask, secret_values


def clean(text: str) -> str:
    """Return a text with secrets masked and control characters escaped."""
    return escape(redact_text(text))


def shown_body(record: Record, *, outdated: bool = False) -> JsonObject:
    """Return the body of a record for display.

    Args:
        record: The record.
        outdated: Whether its owner cannot be translated now.
    """
    shown: JsonObject = masked(record.body, place_of(*record.key), leaf=ValueMask(secret_values(record.secrets)))
    if (outdated or record.key.kind == "consumers") and isinstance(record.body.get("plugins"), dict):
        shown["plugins"] = blank(record.body["plugins"])
    if "cert" in record.body and "key" in record.body:
        shown["key"] = REDACTED
    return shown


def _lines(text: str) -> str:
    """Clean a text that may have lines: Lua code, certificates."""
    return escape(redact_text(text), keep="\n\t")


def redacted(value: Any) -> Any:
    """Return a document for display: secrets masked, line breaks kept, characters that cannot be encoded escaped."""
    if isinstance(value, str):
        return _lines(value)
    if isinstance(value, dict):
        return {name: redacted(item) for name, item in value.items()}
    return [redacted(item) for item in value] if isinstance(value, list) else value
