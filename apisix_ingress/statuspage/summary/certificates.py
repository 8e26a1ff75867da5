"""Certificates in the desired records: issuer, validity, server names, Secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from cryptography.x509.oid import NameOID

from apisix_ingress.model.formats.certificates import read_chain
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.ordering import ordered

if TYPE_CHECKING:
    from cryptography import x509

SOON = timedelta(days=14)
"""A certificate that expires earlier needs attention: cert-manager renews a month before the end."""

_KEPT = 16_384
_EVERY = 20
"""Certificates that are read before other tasks get their turn: about 2 ms."""

Validity = Literal["valid", "expires soon", "expired", "not valid yet", "unreadable"]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a certificate contains.

    Attributes:
        issuer: The common name of the issuer, or its organization.
        begins: Start of its validity.
        ends: End of its validity.
        self_signed: Whether subject and issuer are the same.
    """

    issuer: str
    begins: datetime
    ends: datetime
    self_signed: bool


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that should be in the gateways.

    Attributes:
        entry: Its record.
        secret: The Secret that it comes from; None if it comes from none.
        contents: What it contains; None if that cannot be read.
    """

    entry: Entry
    secret: ObjectKey | None
    contents: Contents | None

    def validity(self, now: datetime) -> Validity:
        """Return whether it can be used at an instant."""
        if self.contents is None:
            return "unreadable"
        if self.contents.ends <= now:
            return "expired"
        if self.contents.begins > now:
            return "not valid yet"
        return "expires soon" if self.contents.ends - now < SOON else "valid"


async def read_certificates(entries: Iterable[Entry]) -> list[Certificate]:
    """Return the certificates of records, the first to expire first."""
    found = [_certificate(entry) async for entry in in_turns(tuple(entries), every=_EVERY)]
    return await ordered(found, _place)


def covering(certificates: Iterable[Certificate]) -> dict[str, Certificate]:
    """Return server name → the certificate that expires first; wildcards under their own name."""
    found: dict[str, Certificate] = {}
    for each in certificates:
        for host in each.entry.hosts:
            found.setdefault(host.lower(), each)
    return found


def certificate_of(host: str, by_name: Mapping[str, Certificate]) -> Certificate | None:
    """Return the certificate for a host: for the name, else for the wildcard above it."""
    return by_name.get(host.lower()) or by_name.get(f"*.{host.lower().partition('.')[2]}")


def forget() -> None:
    """Free the memory of what was read."""
    _contents.cache_clear()


def _certificate(entry: Entry) -> Certificate:
    text, labels = entry.record.body.get("cert"), entry.record.body.get("labels")
    secret = None
    if isinstance(labels, Mapping) and labels.get("meta_secret_name"):
        secret = ObjectKey("Secret", str(labels.get("meta_secret_namespace", "")), str(labels["meta_secret_name"]))
    return Certificate(entry, secret, _contents(text) if isinstance(text, str) else None)


def _place(each: Certificate) -> tuple[float, tuple[str, ...], str]:
    ends = each.contents.ends.timestamp() if each.contents else float("inf")
    return ends, each.entry.hosts[:1], each.entry.key.id


@lru_cache(maxsize=_KEPT)
def _contents(text: str) -> Contents | None:
    try:
        found = read_chain(text.encode())[0]
        issuer, own = _name(found.issuer), found.issuer == found.subject
        return Contents(issuer, found.not_valid_before_utc, found.not_valid_after_utc, own)
    except ValueError:
        return None


def _name(name: x509.Name) -> str:
    texts = (str(each.value) for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME) for each in _of(name, oid))
    return next((text for text in texts if text), "")


def _of(name: x509.Name, oid: x509.ObjectIdentifier) -> list[x509.NameAttribute[str | bytes]]:
    return list(name.get_attributes_for_oid(oid))
