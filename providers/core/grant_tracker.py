"""Tracks the grants and addresses that published records depend on, and detects that they were revoked."""

from __future__ import annotations

import structlog

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.view import View
from apisix_ingress.state.world import World
from translation.addresses.destinations import are_open
from translation.core.grants import Destination, Reference, is_granted
from translation.core.options import Options
from translation.core.result import Translation
from translation.hosts.host_owners import HostOwners, rests_on_lost_host

log = structlog.get_logger()

_NONE: tuple[frozenset[Reference], frozenset[Destination]] = (frozenset(), frozenset())


class GrantTracker:
    """Remembers for each owner which grants and addresses its last published records depend on.

    Args:
        world: The desired records.
        options: The settings.
    """

    def __init__(self, world: World, options: Options) -> None:
        self._world = world
        self._options = options
        self._of: dict[ObjectKey, tuple[frozenset[Reference], frozenset[Destination]]] = {}

    def remember(self, owner: ObjectKey, translation: Translation) -> None:
        """Remember what a translation that is being published depends on."""
        if translation.references or translation.destinations:
            self._of[owner] = (translation.references, translation.destinations)
        else:
            self._of.pop(owner, None)

    def is_revoked(self, owner: ObjectKey, translation: Translation, view: View) -> bool:
        """Return whether the last good records, which a failed translation would keep, are no longer permitted.

        The object may have been edited since, so its failed translation does not show that a grant was removed, that an
        address is rejected or that a host belongs to another namespace now.
        """
        if not translation.failed:
            return False
        references, destinations = self._of.get(owner, _NONE)
        records = self._world.desired.of_owner(owner).values()
        reason = ""
        if not all(is_granted(each, view) for each in references):
            reason = "its last valid records need a grant that was removed"
        elif not are_open(destinations, view, self._options):
            reason = "its last valid records use an address that is no longer permitted"
        elif rests_on_lost_host(records, owner.namespace, HostOwners(view, self._options)):
            reason = "its last valid records use a host that belongs to another namespace"
        if reason:
            log.warning("object.withdrawn", object=str(owner), reason=reason)
        return bool(reason)
