"""Objects in command line arguments: `ApisixRoute shop/web`, `ar shop/web`, `ingresses shop/web`."""

from __future__ import annotations

from collections.abc import Iterable

from apisix_ingress.errors import UsageError
from apisix_ingress.model.formats.near_words import did_you_mean
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES


def find_kind(text: str, kinds: Iterable[str]) -> str:
    """Return the kind for a word: its name, its plural or its short name, in any case.

    Raises:
        UsageError: Not one of `kinds`.
    """
    kinds = tuple(kinds)
    word = text.lower()
    for kind in kinds:
        if word in map(str.lower, kind_names(kind)):
            return kind
    advice = did_you_mean(text, (name for kind in kinds for name in kind_names(kind)))
    raise UsageError(f"unknown kind {text!r}; {advice or 'use one of ' + ', '.join(kinds)}")


def kind_names(kind: str) -> tuple[str, ...]:
    """Return the words by which users name a kind: its name, its plural and its short name, if it has one."""
    row = RESOURCES[kind]
    return tuple(filter(None, (kind, row.plural, row.short)))


def parse_object(kind: str, name: str, kinds: Iterable[str]) -> ObjectKey:
    """Return the key of an object given by kind and namespace/name.

    Raises:
        UsageError: The kind is not one of `kinds`, or the name does not have the form of the kind.
    """
    found = find_kind(kind, kinds)
    namespace, slash, rest = name.partition("/")
    if not RESOURCES[found].namespaced:
        if slash or not name:
            raise UsageError(f"{found} is cluster-scoped: write only its name, not {name!r}")
        return ObjectKey(found, "", name)
    if not (namespace and rest) or "/" in rest:
        raise UsageError(f"write the {found} as namespace/name, not {name!r}")
    return ObjectKey(found, namespace, rest)
