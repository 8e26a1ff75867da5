"""Bodies of records for display: without private keys, credentials and values from Secrets.

A value is masked because of its name and plugin (code as well), because of the pattern of its text, or because the
Secrets that its owner read contain it. No plugin value of a consumer is shown at all, nor of an object that cannot be
translated: its last valid record may contain values of a Secret that has been deleted since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.records import Record
from apisix_ingress.model.secrets.fields import place_of
from apisix_ingress.model.secrets.redaction import escape, masked, redact_text
from apisix_ingress.model.secrets.value_mask import REDACTED, ValueMask
from apisix_ingress.model.secrets.value_mask import secret_values as values_of
from apisix_ingress.state.world import World


def clean(text: str) -> str:
    """Return a text with secrets masked and control characters escaped."""
    return escape(redact_text(text))


def shown_body(record: Record, values: frozenset[str], *, outdated: bool = False) -> JsonObject:
    """Return the body of a record for display.

    Args:
        record: The record.
        values: Strings to hide.
        outdated: Whether its owner cannot be translated now, so that `values` may be incomplete.
    """
    shown: JsonObject = masked(record.body, place_of(*record.key), leaf=ValueMask(values))
    if (outdated or record.key.kind == "consumers") and isinstance(record.body.get("plugins"), dict):
        shown["plugins"] = _blank(record.body["plugins"])
    if "cert" in record.body and "key" in record.body:
        shown["key"] = REDACTED
    return shown


def secret_values(world: World, owners: Iterable[ObjectKey]) -> frozenset[str]:
    """Return the values of the Secrets that the translations of these objects read."""
    store = world.stores.get("Secret")
    read = {read for owner in owners for read in world.dependents.reads_of(owner)}
    keys = [key for key in read if isinstance(key, ObjectKey) and key.kind == "Secret"]
    found = [store.get(key) for key in keys] if store is not None else []
    return frozenset(value for item in found if isinstance(item, Secret) for value in values_of(item))


def _lines(text: str) -> str:
    """Clean a text that may have lines: Lua code, certificates."""
    return escape(redact_text(text), keep="\n\t")


def _blank(value: Any) -> Any:
    """Return the shape of a value without any of its texts and numbers."""
    if isinstance(value, Mapping):
        return {clean(str(name)): _blank(item) for name, item in value.items()}
    return value if isinstance(value, bool) or value in (None, "") else REDACTED


def redacted(value: Any) -> Any:
    """Return a document for display: secrets masked, line breaks kept, characters that cannot be encoded escaped."""
    if isinstance(value, str):
        return _lines(value)
    if isinstance(value, dict):
        return {name: redacted(item) for name, item in value.items()}
    return [redacted(item) for item in value] if isinstance(value, list) else value
