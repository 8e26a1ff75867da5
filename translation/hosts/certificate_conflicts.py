"""Certificate conflicts: if two objects want a host, the oldest wins, and one of another namespace loses the host.

A gateway serves the certificate that it received first, and possibly another one after a restart; therefore only one of
two namespaces is published. Within a namespace both are, as in 1.8: its owner decides. Only if one of them requires
client certificates do objects with other client-auth settings lose the host, even if they are older: otherwise, the
gateway might accept requests without a certificate. Age does not depend on the order of events, nor on whether an
object can be translated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import TLS_HOST_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.network.tls_hosts import (
    FROM_CERTIFICATE,
    MOST_HOSTS,
    count_tls_hosts,
    requires_clients,
    with_client_auth,
)
from apisix_ingress.model.objects import CustomObject, why_first
from apisix_ingress.state.view import View, oldest
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.scope import is_ours
from translation.hosts.host_certificates import Face, face_of, faces
from translation.hosts.host_owners import HostOwners

KINDS = kinds_with(TLS_HOST_INDEX)

CONFLICT = "HostConflict"

_UNNAMED = IndexKey("Ingress", TLS_HOST_INDEX, FROM_CERTIFICATE)
"""Ingresses whose certificates determine their hosts; an ApisixTls lists its hosts."""


class Rival(NamedTuple):
    """Another object that has a host.

    Attributes:
        item: The object.
        face: Of the host; None if it is unknown.
    """

    item: CustomObject
    face: Face | None

    def excludes(self, namespace: str, face: Face) -> bool:
        """Return whether it takes the host from an object of a namespace with this face."""
        if self.item.meta.namespace != namespace:
            return True
        return requires_clients(self.item) and (self.face is None or self.face.client != face.client)


class HostConflicts:
    """The other objects that have a host of one object.

    Args:
        obj: The object; it does not conflict with itself.
        view: The objects to read.
        options: The settings.
    """

    def __init__(self, obj: CustomObject, view: View, options: Options) -> None:
        self._obj = obj
        self._view = view
        self._options = options
        self._owners = HostOwners(view, options)
        # They are few, and may have any host.
        self._unnamed: list[CustomObject] | None = None
        self._faces: dict[ObjectKey, dict[str, Face | None]] = {}

    def first(self, host: str) -> Rival | None:
        """Return the oldest other object in scope that has a host; None if there is none."""
        return next((Rival(item, self._of(item)[host]) for item in self._by_age(host) if self._has(item, host)), None)

    def ahead(self, host: str, face: Face) -> Rival | None:
        """Return the object that decides about a host, if it has another face; None if it is this one or has the same.

        It is the oldest one that requires client certificates in the namespace of the oldest object, else the oldest.
        """
        first = self.first(host)
        if first is None:
            return None
        elder = min(first.item, self._obj, key=_age)
        winner = self._requiring(host, elder.meta.namespace) or elder
        if winner.meta.key == self._obj.meta.key:
            return None
        rival = Rival(winner, self._of(winner)[host])
        return None if rival.face == face else rival

    def _requiring(self, host: str, namespace: str) -> CustomObject | None:
        """Return the oldest object of a namespace that requires client certificates for a host, this one included."""
        for item in heapq.merge(*self._indexed(with_client_auth(host)), key=_age):
            if item.meta.namespace == namespace and (item.meta.key == self._obj.meta.key or self._has(item, host)):
                return item
        return None

    def _has(self, item: CustomObject, host: str) -> bool:
        """Return whether another object has a host."""
        if item.meta.key == self._obj.meta.key or not is_ours(item, self._view, self._options):
            return False
        return not self._owners.refusal(item.meta.namespace, host) and host in self._of(item)

    def _by_age(self, host: str) -> Iterator[CustomObject]:
        if self._unnamed is None:
            self._unnamed = list(oldest(self._view, CustomObject, _UNNAMED))
        return heapq.merge(*self._indexed(host), self._unnamed, key=_age)

    def _indexed(self, value: str) -> Iterator[Iterable[CustomObject]]:
        """Yield the objects of each kind that are indexed under a value, the oldest first."""
        return (oldest(self._view, CustomObject, IndexKey(kind, TLS_HOST_INDEX, value)) for kind in KINDS)

    def _of(self, item: CustomObject) -> dict[str, Face | None]:
        if item.meta.key not in self._faces:
            known: dict[str, Face | None] = {}
            for host, face in faces(item, self._view, self._options):
                known.setdefault(host, face)
            self._faces[item.meta.key] = known
        return self._faces[item.meta.key]


class Hosts:
    """The hosts that an object may have certificates for.

    Args:
        draft: The translation of the object; problems are reported there.
        obj: The ApisixTls or Ingress.
    """

    def __init__(self, draft: Builder, obj: CustomObject) -> None:
        self._draft = draft
        self._age = obj.meta.age
        self._rivals = HostConflicts(obj, draft.view, draft.options)
        self._own: dict[str, tuple[Face, str]] = {}
        if (count := count_tls_hosts(obj)) > MOST_HOSTS:
            message = f"has certificates for {count} hosts; the limit is {MOST_HOSTS}; split the object"
            draft.error("TooManyHosts", "spec", message)

    def allowed(self, hosts: Sequence[str], body: FrozenJson, path: str) -> list[str]:
        """Return the hosts that no other object takes from this one.

        Args:
            hosts: The desired hosts.
            body: An ssl record with its certificate and client-auth settings.
            path: The field that problems refer to.
        """
        face = face_of(body)
        return [host for host in self._draft.usable(hosts, path) if self._is_allowed(host, face, path)]

    def _is_allowed(self, host: str, face: Face, path: str) -> bool:
        name = canonical_host(host)
        own, field = self._own.setdefault(name, (face, path))
        if own != face:
            message = (
                f"host {host} has another certificate in {field}, and APISIX serves one certificate per host; keep one"
            )
            self._draft.warn(CONFLICT, path, message)
        rival = self._rivals.ahead(name, face)
        if rival is None:
            return True
        if not rival.excludes(self._draft.namespace, face):
            message = (
                f"host {host} has another certificate in {rival.item.meta.key}, which"
                f" {why_first(rival.item.meta.age, self._age)}, and APISIX serves one certificate per host"
            )
            self._draft.warn(CONFLICT, path, f"{message}; use the same certificate or another host")
            return True
        if rival.item.meta.namespace == self._draft.namespace:
            self._report_stricter(host, rival, face, path)
        else:
            is_older = rival.item.meta.age < self._age
            why = f", which {why_first(rival.item.meta.age, self._age)}," if is_older else ""
            message = (
                f"host {host} is skipped: {stranger(rival.item.meta.key)}{why} serves it with a different certificate"
                " or client-auth settings; use another host, or ask that team to remove it"
            )
            self._draft.degrade(CONFLICT, path, message)
        return False

    def _report_stricter(self, host: str, rival: Rival, face: Face, path: str) -> None:
        """Report an object of this namespace that requires other client certificates, or requires them at all."""
        winner = rival.item.meta.key
        if not face.client and rival.face is not None and rival.face.certificate == face.certificate:
            message = f"host {host} is served with the same certificate by {winner}, which requires client certificates"
            self._draft.warn(CONFLICT, path, f"{message}; remove the host from one of them")
            return
        why = "has other client-auth settings" if face.client else "requires client certificates"
        message = (
            f"host {host} is skipped: {winner} {why}, and APISIX has one certificate and one client-auth setting per"
            " host; use another host, or the same certificate and settings"
        )
        self._draft.degrade(CONFLICT, path, message)


def _age(item: CustomObject) -> tuple[str, ...]:
    return item.meta.age


def stranger(winner: ObjectKey) -> str:
    """Describe an object in another namespace without more than its tenants may know."""
    return f"an {winner.kind} in namespace {winner.namespace}"
