"""Hosts of certificates: whether an object gives a host another certificate than one that has the host already.

A gateway shows the one that was stored first. The same certificate twice is no conflict, whatever Secret it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import CustomObject
from apisix_ingress.model.records import Record
from apisix_ingress.state.desired import Desired
from translation.result import Translation

Translate = Callable[[CustomObject], Translation]

TLS_KINDS = frozenset({"ApisixTls", "Ingress"})

_CERTIFICATES_KEPT = 4096


def host_conflicts(
    item: CustomObject, old: CustomObject | None, translate: Translate, desired: Desired
) -> tuple[str, ...]:
    """Return a sentence for each host that has another certificate already, in the object or in another one.

    Args:
        item: The object as it is to be.
        old: As it was. What was in conflict before does not count, so that such an object can be edited.
        translate: Returns the records of an object.
        desired: The records of all objects.
    """
    if item.meta.kind not in TLS_KINDS:
        return ()
    before = set(_pairs(old, translate)) if old is not None else set()
    mine: dict[str, str] = {}
    problems: list[str] = []
    for host, certificate in _pairs(item, translate):
        if mine.setdefault(host, certificate) != certificate:
            problems.append(f"host {host} has two different certificates in this object; keep one of them")
    new = {host: certificate for host, certificate in mine.items() if (host, certificate) not in before}
    rivals = _rivals(item.meta.key, new, desired) if new else {}
    problems += [
        f"host {host} has another certificate already, in {_named(rival, item.meta.key)}; "
        "use the same certificate or another host"
        for host, rival in sorted(rivals.items())
    ]
    return tuple(dict.fromkeys(problems))


def _pairs(item: CustomObject, translate: Translate) -> Iterator[tuple[str, str]]:
    """Yield each host of an object with the fingerprint of its certificate, as far as they are known."""
    for part in _parts(item):
        for record in translate(part).records:
            if record.key.kind == "ssls":
                yield from _bindings(record)


def _parts(item: CustomObject) -> Iterator[CustomObject]:
    """Yield an object for each certificate, so that one missing Secret or Service does not hide the others."""
    if item.meta.kind != "Ingress":
        yield item
        return
    hosts = [{"host": rule.get("host", "")} for rule in _mappings(item.spec.get("rules"))]
    meta = replace(item.meta, annotations={})
    for entry in _mappings(item.spec.get("tls")):
        yield CustomObject(meta, {"rules": [] if entry.get("hosts") else hosts, "tls": [entry]})


def _mappings(value: object) -> Iterator[JsonObject]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def _bindings(record: Record) -> Iterator[tuple[str, str]]:
    fingerprint = _fingerprint(record.body["cert"])
    return ((host.lower(), fingerprint) for host in record.body["snis"])


def _rivals(owner: ObjectKey, wanted: Mapping[str, str], desired: Desired) -> dict[str, ObjectKey]:
    """Return which other object has each host with another certificate; the first one by its key."""
    found: dict[str, ObjectKey] = {}
    certificates = (key for key in desired.keys() if key.kind == "ssls")  # noqa: SIM118  # it is no mapping
    for key in certificates:
        for rival in desired.owners_of(key):
            record = desired.of_owner(rival)[key]
            if rival == owner or wanted.keys().isdisjoint(map(str.lower, record.body["snis"])):
                continue
            for host, certificate in _bindings(record):
                if wanted.get(host, certificate) != certificate:
                    found[host] = min(found.get(host, rival), rival)
    return found


def _named(rival: ObjectKey, owner: ObjectKey) -> str:
    """Name another object; of one in another namespace only the namespace, which is all its tenant may know."""
    return str(rival) if rival.namespace == owner.namespace else f"an {rival.kind} in namespace {rival.namespace}"


@lru_cache(maxsize=_CERTIFICATES_KEPT)
def _fingerprint(certificate: str) -> str:
    """Return the SHA-256 of the leaf of a chain; it was parsed before."""
    return x509.load_pem_x509_certificates(certificate.encode())[0].fingerprint(SHA256()).hex()
