"""Hosts of other namespaces, if the settings give each host an owner.

Objects of the Gateway API own no host: among them the hostnames and `allowedRoutes` of listeners decide. They may not
use hosts that Ingresses and ApisixRoutes of other namespaces own, nor, with `host_ownership: assigned`, any host that
is not assigned to their namespace.
"""

from __future__ import annotations

from collections.abc import Iterable

from translation.core.builder import Builder
from translation.hosts.host_owners import NOT_OWNED


def foreign(draft: Builder, namespace: str, host: str) -> str:
    """Return why objects of a namespace may not use a host, or an empty string; the host "" means every host."""
    if draft.options.host_ownership == "assigned":
        return draft.owners.refusal(namespace, host)
    owners = draft.owners.taken_by(namespace, host) if host else ()
    return f"host {host} is skipped: it belongs to namespace {', '.join(owners)}; use another one" if owners else ""


def usable(draft: Builder, hosts: Iterable[str], path: str) -> list[str]:
    """Return the hosts that the namespace of the object may use, and report the others."""
    found = []
    for host in hosts:
        if why := foreign(draft, draft.namespace, host):
            draft.degrade(NOT_OWNED, path, why)
        else:
            found.append(host)
    return found
