"""Hosts of certificates: for which hosts an ApisixTls or Ingress wants one shown, so that rivals for a host are found.

Read from raw specs, as every index is, so that what can't be translated counts, too. A wildcard is a host of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.objects import CustomObject

MOST_HOSTS = 20_000
"""Hosts in one object; one with more is found under none, and is refused when it is translated."""

FROM_CERTIFICATE = ""
"""The value of an Ingress that leaves it to a certificate to name the hosts."""


class TlsEntry(NamedTuple):
    """Hosts of one certificate.

    Attributes:
        field: Where in the object, e.g. `spec.tls[0]`.
        secret: The name of the Secret; empty if it is in the spec of an ApisixTls.
        hosts: In canonical spelling; empty: the hosts in the certificate.
    """

    field: str
    secret: str
    hosts: tuple[str, ...]


def tls_entries(obj: CustomObject) -> tuple[TlsEntry, ...]:
    """Return the entries of an ApisixTls or Ingress in their order; none if they have too many hosts."""
    entries = tuple(_ingress(obj.spec) if obj.meta.kind == "Ingress" else _tls(obj.spec))
    return entries if sum(len(entry.hosts) for entry in entries) <= MOST_HOSTS else ()


def count_tls_hosts(obj: CustomObject) -> int:
    """Return how many hosts the entries of an object have together."""
    entries = _ingress(obj.spec) if obj.meta.kind == "Ingress" else _tls(obj.spec)
    return sum(len(entry.hosts) for entry in entries)


def tls_host_values(obj: CustomObject) -> Iterable[str]:
    """Return the values under which an object is indexed."""
    return {host for entry in tls_entries(obj) for host in entry.hosts or (FROM_CERTIFICATE,)}


def _tls(spec: FrozenJson) -> Iterator[TlsEntry]:
    if hosts := _hosts(spec.get("hosts")):
        yield TlsEntry("spec.hosts", "", hosts)


def _ingress(spec: FrozenJson) -> Iterator[TlsEntry]:
    of_rules = _hosts([mapping_in(rule).get("host") for rule in list_in(spec.get("rules"))])
    for index, item in enumerate(list_in(spec.get("tls"))):
        entry = mapping_in(item)
        secret = entry.get("secretName")
        if isinstance(secret, str) and secret:
            yield TlsEntry(f"spec.tls[{index}]", secret, _hosts(entry.get("hosts")) or of_rules)


def _hosts(value: object) -> tuple[str, ...]:
    named = (canonical_host(item) for item in list_in(value) if isinstance(item, str) and item)
    return tuple(dict.fromkeys(named))
