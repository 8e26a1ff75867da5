"""Hosts of certificates: whether an object gives a host a different certificate than another object does.

`translation.hosts.certificate_conflicts` decides which objects conflict. A new object is denied here if the controller
would withdraw one of the certificates afterwards, and also within one namespace, where the controller publishes both.
"""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import SHARED_WITH, claimed_hosts
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.hosts.certificate_conflicts import KINDS, HostConflicts, stranger
from translation.hosts.host_certificates import Face, faces
from translation.hosts.host_owners import NAMING_KINDS, HostOwners


def host_conflicts(item: CustomObject, old: CustomObject | None, view: View, options: Options) -> tuple[str, ...]:
    """Return a sentence for each host that already has a different certificate, in the object or in another one.

    Unknown certificates, because of a missing Secret, do not conflict.

    Args:
        item: The new version of the object.
        old: The previous version. Existing conflicts are ignored, so that such an object can be edited.
        view: The stores with the new version of the object.
        options: The settings.
    """
    if item.meta.kind not in KINDS:
        return ()
    before = set(faces(old, view, options)) if old is not None else set()
    mine: dict[str, Face] = {}
    problems: list[str] = []
    for host, face in faces(item, view, options):
        if face is not None and mine.setdefault(host, face) != face:
            problems.append(f"host {host} has two different certificates in this object; keep one of them")
    rivals = HostConflicts(item, view, options)
    for host in sorted(mine):
        if (host, mine[host]) in before:
            continue
        rival = rivals.ahead(host, mine[host]) or rivals.first(host)
        if rival is not None and rival.face not in (None, mine[host]):
            whose = _named(rival.item.meta.key, item.meta.key)
            if rival.face.certificate != mine[host].certificate:
                taken, remedy = "a different certificate", "the same certificate"
            else:
                taken, remedy = "other client-auth settings", "the same settings"
            problems.append(f"host {host} already has {taken}, in {whose}; use {remedy} or another host")
    return tuple(dict.fromkeys(problems))


def taken_hosts(item: CustomObject, old: CustomObject | None, view: View, options: Options) -> tuple[str, ...]:
    """Return a sentence for each host that is new to an object and belongs to another namespace.

    The controller would skip the host; a host without a holder would even go to an object that is old enough.

    Args:
        item: The new version of the object.
        old: The previous version. Its hosts are ignored, so that such an object can be edited.
        view: The stores without the change.
        options: The settings.
    """
    if item.meta.kind not in NAMING_KINDS:
        return ()
    before = {*claimed_hosts(old)} if old is not None else set()
    owners, namespace = HostOwners(view, options), item.meta.namespace
    new = (host for host in claimed_hosts(item) if host not in before)
    taken = ((host, owners.taken_by(namespace, host)) for host in new)
    return tuple(
        f"host {host} belongs to namespace {', '.join(whose)}; use another host, or ask its owner to annotate the "
        f"object that names it with {SHARED_WITH}: {namespace}"
        for host, whose in taken
        if whose
    )


def _named(rival: ObjectKey, owner: ObjectKey) -> str:
    return str(rival) if rival.namespace == owner.namespace else stranger(rival)
