"""The versions of gateways, as an object that translations read: what gateways can do depends on them."""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.model.admin_address import version_of
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.state.store import Store

GATEWAY_VERSION = "GatewayVersion"
"""Internal kind."""

OLDEST = ObjectKey(GATEWAY_VERSION, "", "oldest")
"""The only object: `spec.version` is [major, minor] of the oldest gateway that was read."""

_UNKNOWN = (0, 0)
"""Version of gateways that do not report theirs: they may be old."""


class GatewayVersions:
    """The version of each cluster that was read.

    A cluster that was not read yet is ignored: nothing is written to it before.

    Args:
        listener: Called with each read whose result changed.
    """

    def __init__(self, listener: Callable[[Read], None]) -> None:
        self.store: Store[CustomObject] = Store(GATEWAY_VERSION, listener)
        self.store.synced = True
        self._of: dict[str, tuple[int, int]] = {}

    def learn(self, cluster: str, server: str) -> bool:
        """Store the version that a cluster reports; return whether the oldest version changed.

        Args:
            cluster: Its name.
            server: The Server header of its Admin API.
        """
        self._of[cluster] = version_of(server) or _UNKNOWN
        spec = {"version": list(min(self._of.values()))}
        known = self.store.get(OLDEST)
        if known is not None and known.spec == spec:
            return False
        self.store.set(CustomObject(Meta(*OLDEST), spec))
        return True
