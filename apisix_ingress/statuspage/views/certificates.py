"""Certificates: issuer, expiry, Secret and server names; the first to expire first."""

from __future__ import annotations

from apisix_ingress.diagnostics.wanted_certificates import WantedCertificate
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.certificates import Certificate
from apisix_ingress.statuspage.views.presentation import bounded, object_reference, page_of, paging, rfc3339
from apisix_ingress.statuspage.views.records import record_reference


async def certificates(facts: PageInputs, snapshot: Snapshot, query: str, page: int) -> JsonObject:
    """Return a page of the certificates."""
    words, every = query.lower().split(), snapshot.summary.certificates
    missing = [each for each in snapshot.summary.wanted if each.matches(words)]
    found = [*missing, *[each async for each in in_turns(every) if _matches(each, words)]]
    return {
        "query": query,
        **paging(len(found), page),
        "items": [certificate_row(facts, each) for each in page_of(found, page)],
    }


def certificate_row(facts: PageInputs, each: Certificate | WantedCertificate) -> JsonObject:
    """Return a certificate for display; `validity` is `missing` if no gateway has it."""
    if isinstance(each, WantedCertificate):
        return _missing_row(each)
    contents, now = each.contents, facts.clock.now()
    return {
        **record_reference(each.entry),
        "hosts": bounded(map(clean, each.entry.hosts)),
        "validity": each.validity(now),
        "cause": "",
        "issuer": clean(contents.issuer) if contents else "",
        "self_signed": contents.self_signed if contents else False,
        "begins": rfc3339(contents.begins if contents else None),
        "expires": rfc3339(contents.ends if contents else None),
        "secret": object_reference(each.secret) if each.secret else None,
    }


def _missing_row(each: WantedCertificate) -> JsonObject:
    return {
        "kind": "ssls",
        "id": "",
        "name": "",
        "owner": object_reference(each.owner),
        "status": "not published",
        "empty": False,
        "nodes": 0,
        "states": [],
        "hosts": bounded(map(clean, each.hosts)),
        "validity": "missing",
        "cause": clean(each.cause),
        "issuer": "",
        "self_signed": False,
        "begins": "",
        "expires": "",
        "secret": object_reference(each.secret) if each.secret else None,
    }


def _matches(each: Certificate, words: list[str]) -> bool:
    issuer = each.contents.issuer.lower() if each.contents else ""
    secret = str(each.secret or "").lower()
    return all(word in issuer or word in secret or each.entry.matches((word,)) for word in words)
