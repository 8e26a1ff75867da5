"""Expiry times of the certificates in use, by Secret, for a metric."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import lru_cache

from cryptography import x509

from apisix_ingress.state.desired import Desired

SHOWN = 200
"""Maximum number of Secrets in the metric, the first to expire: users can create any number of Secrets."""

_KEPT = 4096
_NAMESPACE, _NAME = "meta_secret_namespace", "meta_secret_name"


def expiries(desired: Desired) -> Mapping[tuple[str, str], float]:
    """Return (namespace, name) of a Secret whose certificate is in use → its expiry in Unix time; the first `SHOWN`."""
    soonest = heapq.nsmallest(SHOWN, {*_ends(desired)})
    # During a rotation one Secret has two certificates. The reversed order keeps the one that expires first.
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
    """Return when a certificate expires; it is valid PEM, because it is part of a record."""
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc.timestamp()
