"""How people name an object on a command line: `ApisixRoute shop/web`, `ar shop/web`, `ingresses shop/web`."""

from __future__ import annotations

from collections.abc import Iterable

from apisix_ingress.errors import UsageError
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES


def find_kind(text: str, kinds: Iterable[str]) -> str:
    """Return the kind that a word stands for: its name, its plural or its short name, in any case.

    Raises:
        UsageError: It stands for none of `kinds`.
    """
    kinds = tuple(kinds)
    word = text.lower()
    for kind in kinds:
        row = RESOURCES[kind]
        if word and word in (kind.lower(), row.plural, row.short):
            return kind
    raise UsageError(f"{text!r} is none of the kinds {', '.join(kinds)}")


def parse_object(kind: str, name: str, kinds: Iterable[str]) -> ObjectKey:
    """Return the key of an object that people named by kind and namespace/name.

    Raises:
        UsageError: The kind is none of `kinds`, or the name is not as the kind has them.
    """
    found = find_kind(kind, kinds)
    namespace, slash, rest = name.partition("/")
    if not RESOURCES[found].namespaced:
        if slash or not name:
            raise UsageError(f"{found} is in no namespace: write its name alone, not {name!r}")
        return ObjectKey(found, "", name)
    if not (namespace and rest) or "/" in rest:
        raise UsageError(f"write the {found} as namespace/name, not {name!r}")
    return ObjectKey(found, namespace, rest)
