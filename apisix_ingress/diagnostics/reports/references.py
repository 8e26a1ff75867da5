"""Documents as `-o json` prints them: every reference to an object is kind, namespace and name.

Inside the program, documents hold references as texts (`ApisixRoute default/web`), as the other formats show them.
"""

from __future__ import annotations

from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey

_FIELDS = frozenset({"object", "owner", "pod", "ingress"})
_LISTS = frozenset({"ingresses"})
_BODIES = frozenset({"before", "after", "body"})
"""Fields with content of gateways, which stays as it is."""


def reference(text: str) -> JsonObject | None:
    """Return the reference that a text stands for, such as `ApisixRoute default/web`; None for an empty one."""
    if not text:
        return None
    kind, _, place = text.partition(" ")
    namespace, slash, name = place.rpartition("/")
    return {"kind": kind, "namespace": namespace if slash else "", "name": name}


def bare(reference: JsonObject | None) -> JsonObject | None:
    """Return a reference of the status page without the fields that only the page shows."""
    return {name: reference[name] for name in ("kind", "namespace", "name")} if reference else None


def text_of(reference: JsonObject | None) -> str:
    """Return a reference as a text; empty for none."""
    return str(ObjectKey(**reference)) if reference else ""


def with_texts(document: Any) -> Any:
    """Return a document of `-o json` with texts in place of references, as the program has them."""
    if isinstance(document, list):
        return [with_texts(item) for item in document]
    if not isinstance(document, dict):
        return document
    if document.keys() == {"kind", "namespace", "name"}:
        return str(ObjectKey(**document))
    return {name: ("" if name in _FIELDS and item is None else with_texts(item)) for name, item in document.items()}


def with_references(document: Any) -> Any:
    """Return a document with references in place of texts."""
    if isinstance(document, list):
        return [with_references(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {name: _field(name, value) for name, value in document.items()}


def _field(name: str, value: Any) -> Any:
    if name in _BODIES:
        return value
    if name in _FIELDS and isinstance(value, str):
        return reference(value)
    if name in _LISTS and all(isinstance(item, str) for item in value):
        return [reference(item) for item in value]
    return with_references(value)
