"""Parts of all views: references, times, pages of lists. Every text that came from outside is cleaned here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.statuspage.record_masking import clean

PER_PAGE = 100
MOST_SHOWN = 20
"""Maximum number of hosts, paths or nodes in one row."""

MOST_LISTED = 100
"""Maximum number of items of a list without pages."""


def object_reference(key: ObjectKey) -> JsonObject:
    """Return an object as the page names and links it."""
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name, "text": clean(str(key))}


def rfc3339(moment: datetime | None) -> str:
    """Return a time as text, or nothing."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def paging(total: int, page: int) -> JsonObject:
    """Return the number of items and pages, and the page that is shown."""
    pages = max(1, -(-total // PER_PAGE))
    return {"total": total, "page": min(page, pages), "pages": pages}


def page_of(found: Sequence[Any], page: int) -> Sequence[Any]:
    """Return the items of a page."""
    start = (paging(len(found), page)["page"] - 1) * PER_PAGE
    return found[start : start + PER_PAGE]


def bounded(texts: Iterable[str]) -> list[str]:
    """Return the first texts, and how many there are more."""
    iterator = iter(texts)
    shown = list(islice(iterator, MOST_SHOWN))
    more = sum(1 for _ in iterator)
    return [*shown, f"and {more} more"] if more else shown
