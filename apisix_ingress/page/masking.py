"""Bodies of records as they may be shown: without private keys, credentials and whatever came out of a Secret.

A value is masked by its name, by the pattern of its text, or because the Secrets that its owner read hold it. Of
consumers no value of a plugin is shown at all, nor of an object that can't be translated: its last good record may
have come out of a Secret that has gone since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import Secret
from apisix_ingress.model.records import Record
from apisix_ingress.redaction import REDACTED, escape, is_secret_name, redact_text
from apisix_ingress.state.world import World

_PUBLIC = frozenset({"tls.crt", "ca.crt", "cert", "username", "user_dn"})
_SHORTEST = 4
"""A shorter value is masked only where it stands alone: it would blot out half of every text."""

_DEEPEST = 64
# What a `key` is outside of credentials: the variable that a limit counts by, or that a hash is made of.
_VARIABLE = re.compile(r"\$?(remote_addr|server_addr|uri|request_uri|host|consumer_name|(http|arg|cookie)_[a-z0-9_]+)")


def clean(text: str) -> str:
    """Return a text with secrets masked and control characters escaped."""
    return escape(redact_text(text))


def shown_body(record: Record, values: frozenset[str], *, outdated: bool = False) -> JsonObject:
    """Return the body of a record for people.

    Args:
        record: The record.
        values: Texts that nobody may see.
        outdated: Whether its owner can't be translated now, so that `values` may not be all.
    """
    mask = _Mask(values)
    shown = mask.mapping(record.body, 0)
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
    return frozenset(value for item in found if isinstance(item, Secret) for value in _values(item))


def _values(item: Secret) -> Iterable[str]:
    for name, data in item.data.items():
        text = data.decode(errors="ignore")
        if name not in _PUBLIC and text:
            yield from {text, text.strip()} - {""}


class _Mask:
    def __init__(self, values: frozenset[str]) -> None:
        self._values = values
        # Longest first: one that contains another is masked as a whole.
        self._long = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)

    def mapping(self, values: Mapping[str, Any], depth: int) -> JsonObject:
        return {clean(self._text(str(name))): self._under(str(name), value, depth) for name, value in values.items()}

    def _under(self, name: str, value: Any, depth: int) -> Any:
        harmless = name == "key" and isinstance(value, str) and _VARIABLE.fullmatch(value)
        if is_secret_name(name) and not harmless and value not in (None, "", [], {}):
            return REDACTED
        return self.value(value, depth)

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return REDACTED if value in self._values else _lines(self._text(value))
        if depth >= _DEEPEST:
            return "..."
        if isinstance(value, Mapping):
            return self.mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return REDACTED if not isinstance(value, bool) and str(value) in self._values else value

    def _text(self, text: str) -> str:
        for value in self._long:
            text = text.replace(value, REDACTED)
        return text


def _lines(text: str) -> str:
    """Clean a text that may have lines: Lua code, certificates."""
    return escape(redact_text(text), keep="\n\t")


def _blank(value: Any) -> Any:
    """Return the shape of a value without any of its texts and numbers."""
    if isinstance(value, Mapping):
        return {clean(str(name)): _blank(item) for name, item in value.items()}
    return value if isinstance(value, bool) or value in (None, "") else REDACTED


def redacted(value: Any) -> Any:
    """Return a document with its texts fit to be shown: secrets masked, lines kept, what can't be encoded escaped."""
    if isinstance(value, str):
        return _lines(value)
    if isinstance(value, dict):
        return {name: redacted(item) for name, item in value.items()}
    return [redacted(item) for item in value] if isinstance(value, list) else value
