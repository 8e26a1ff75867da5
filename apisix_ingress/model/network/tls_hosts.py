"""Hosts of certificates: the hosts of an ApisixTls or Ingress, to find conflicts between objects.

Derived from raw specs, like every index, so that untranslatable objects are included. A wildcard is a separate host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.objects import CustomObject

MOST_HOSTS = 20_000
"""Limit of hosts per object; an object with more is not indexed and its translation fails."""

FROM_CERTIFICATE = ""
"""The index value of an Ingress that takes the hosts from its certificate."""


class TlsEntry(NamedTuple):
    """Hosts of one certificate.

    Attributes:
        field: The field of the object, e.g. `spec.tls[0]`.
        secret: The name of the Secret; empty if it is in the spec of an ApisixTls.
        hosts: In canonical spelling; empty: the hosts in the certificate.
    """

    field: str
    secret: str
    hosts: tuple[str, ...]


def tls_entries(obj: CustomObject) -> tuple[TlsEntry, ...]:
    """Return the entries of an ApisixTls or Ingress in order; empty if they have too many hosts."""
    entries = tuple(_ingress(obj.spec) if obj.meta.kind == "Ingress" else _tls(obj.spec))
    return entries if sum(len(entry.hosts) for entry in entries) <= MOST_HOSTS else ()


def count_tls_hosts(obj: CustomObject) -> int:
    """Return the total number of hosts in the entries of an object."""
    entries = _ingress(obj.spec) if obj.meta.kind == "Ingress" else _tls(obj.spec)
    return sum(len(entry.hosts) for entry in entries)


def tls_host_values(obj: CustomObject) -> Iterable[str]:
    """Return the values under which an object is indexed."""
    found = {host for entry in tls_entries(obj) for host in entry.hosts or (FROM_CERTIFICATE,)}
    return found | set(map(with_client_auth, found)) if requires_clients(obj) else found


def requires_clients(obj: CustomObject) -> bool:
    """Return whether an object requires client certificates, even if its settings for them are invalid."""
    return obj.meta.kind != "Ingress" and obj.spec.get("client") is not None


def with_client_auth(host: str) -> str:
    """Return the index value of the objects that require client certificates for a host."""
    return f"{host} client"


def _tls(spec: FrozenJson) -> Iterator[TlsEntry]:
    if hosts := _hosts(spec.get("hosts")):
        yield TlsEntry("spec.hosts", "", hosts)


def _ingress(spec: FrozenJson) -> Iterator[TlsEntry]:
    if not (entries := list_in(spec.get("tls"))):
        return
    of_rules = _hosts([mapping_in(rule).get("host") for rule in list_in(spec.get("rules"))])
    for index, item in enumerate(entries):
        entry = mapping_in(item)
        secret = entry.get("secretName")
        if isinstance(secret, str) and secret:
            yield TlsEntry(f"spec.tls[{index}]", secret, _hosts(entry.get("hosts")) or of_rules)


def _hosts(value: object) -> tuple[str, ...]:
    named = (canonical_host(item) for item in list_in(value) if isinstance(item, str) and item)
    return tuple(dict.fromkeys(named))
