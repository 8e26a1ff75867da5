"""Certificate conflicts: if two objects want a host, the oldest wins, and one of another namespace loses the host.

A gateway serves the certificate that it received first, and possibly another one after a restart; therefore only one of
two namespaces is published. Within a namespace both are, as in 1.8: its owner decides. Age does not depend on the order
of events, nor on whether an object can be translated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import TLS_HOST_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.network.tls_hosts import FROM_CERTIFICATE, MOST_HOSTS, count_tls_hosts
from apisix_ingress.model.objects import CustomObject, why_first
from apisix_ingress.state.view import View, oldest
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.scope import is_ours
from translation.hosts.host_certificates import face_of, faces
from translation.hosts.host_owners import HostOwners

KINDS = kinds_with(TLS_HOST_INDEX)

CONFLICT = "HostConflict"

_UNNAMED = IndexKey("Ingress", TLS_HOST_INDEX, FROM_CERTIFICATE)
"""Ingresses whose certificates determine their hosts; an ApisixTls lists its hosts."""


class HostConflicts:
    """The other objects that have a host of one object.

    Args:
        obj: The object; it does not conflict with itself.
        view: The objects to read.
        options: The settings.
    """

    def __init__(self, obj: CustomObject, view: View, options: Options) -> None:
        self._key = obj.meta.key
        self._view = view
        self._options = options
        self._owners = HostOwners(view, options)
        # They are few, and may have any host.
        self._unnamed: list[CustomObject] | None = None
        self._faces: dict[ObjectKey, dict[str, str | None]] = {}

    def first(self, host: str) -> tuple[CustomObject, str | None] | None:
        """Return the oldest other object in scope that has a host, with its face; None if there is none."""
        for item in self._by_age(host):
            if item.meta.key == self._key or not is_ours(item, self._view, self._options):
                continue
            if self._owners.refusal(item.meta.namespace, host):
                continue
            found = self._of(item)
            if host in found:
                return item, found[host]
        return None

    def ahead(self, host: str, face: str, age: tuple[str, ...]) -> CustomObject | None:
        """Return the object that is older than this age and has a host with another face; None if there is none."""
        rival = self.first(host)
        return None if rival is None or rival[0].meta.age > age or rival[1] == face else rival[0]

    def _by_age(self, host: str) -> Iterator[CustomObject]:
        if self._unnamed is None:
            self._unnamed = list(oldest(self._view, CustomObject, _UNNAMED))
        named = (oldest(self._view, CustomObject, IndexKey(kind, TLS_HOST_INDEX, host)) for kind in KINDS)
        return heapq.merge(*named, self._unnamed, key=lambda item: item.meta.age)

    def _of(self, item: CustomObject) -> dict[str, str | None]:
        if item.meta.key not in self._faces:
            known: dict[str, str | None] = {}
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
        self._own: dict[str, tuple[str, str]] = {}
        if (count := count_tls_hosts(obj)) > MOST_HOSTS:
            message = f"has certificates for {count} hosts; the limit is {MOST_HOSTS}; split the object"
            draft.error("TooManyHosts", "spec", message)

    def allowed(self, hosts: Sequence[str], body: FrozenJson, path: str) -> list[str]:
        """Return the hosts that no older object of another namespace has.

        Args:
            hosts: The desired hosts.
            body: An ssl record with its certificate and client-auth settings.
            path: The field that problems refer to.
        """
        face = face_of(body)
        return [host for host in self._draft.usable(hosts, path) if self._is_allowed(host, face, path)]

    def _is_allowed(self, host: str, face: str, path: str) -> bool:
        name = canonical_host(host)
        own, field = self._own.setdefault(name, (face, path))
        if own != face:
            message = (
                f"host {host} has another certificate in {field}, and APISIX serves one certificate per host; keep one"
            )
            self._draft.warn(CONFLICT, path, message)
        rival = self._rivals.ahead(name, face, self._age)
        if rival is None:
            return True
        winner, why = rival.meta.key, why_first(rival.meta.age, self._age)
        if winner.namespace == self._draft.namespace:
            message = (
                f"host {host} has another certificate in {winner}, which {why}, and APISIX serves one certificate"
                " per host"
            )
            self._draft.warn(CONFLICT, path, f"{message}; use the same certificate or another host")
            return True
        message = (
            f"host {host} is skipped: {stranger(winner)}, which {why}, serves it with a different certificate"
            " or client-auth settings; use another host, or ask that team to remove it"
        )
        self._draft.degrade(CONFLICT, path, message)
        return False


def stranger(winner: ObjectKey) -> str:
    """Describe an object in another namespace without more than its tenants may know."""
    return f"an {winner.kind} in namespace {winner.namespace}"
