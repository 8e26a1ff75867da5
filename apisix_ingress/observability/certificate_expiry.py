"""When the certificates expire that the gateways are given: by Secret, those that expire first. For a metric alone."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import lru_cache

from apisix_ingress.state.desired import Desired

SHOWN = 200
"""So many Secrets are shown: users can make any number of them, and the ones that expire last are no news."""

_KEPT = 4096
_NAMESPACE, _NAME = "meta_secret_namespace", "meta_secret_name"


def expiries(desired: Desired) -> Mapping[tuple[str, str], float]:
    """Return namespace and name of each Secret with a certificate in use → its end in Unix time; the first ones."""
    soonest = heapq.nsmallest(SHOWN, {*_ends(desired)})
    # Ascending, so of two certificates of one Secret (a rotation under way) the one that ends first counts.
    return {secret: end for end, secret in reversed(soonest)}


def _ends(desired: Desired) -> Iterator[tuple[float, tuple[str, str]]]:
    for key in desired.keys():  # noqa: SIM118  # not a mapping
        if key.kind != "ssls":
            continue
        for owner in desired.owners_of(key)[:1]:
            body = desired.of_owner(owner)[key].body
            certificate, labels = body.get("cert"), body.get("labels")
            if isinstance(certificate, str) and isinstance(labels, Mapping) and _NAME in labels:
                yield _end(certificate), (str(labels[_NAMESPACE]), str(labels[_NAME]))


@lru_cache(maxsize=_KEPT)
def _end(certificate: str) -> float:
    """Return when a certificate expires; it was read before it became part of a record."""
    from cryptography import x509  # the library is for those who have certificates

    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc.timestamp()
