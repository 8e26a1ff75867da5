"""The whole state: objects, gateways and the lease, read for one command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from apisix_ingress.diagnostics.collect.gateway_state import SeenGateway, see_gateways
from apisix_ingress.diagnostics.collect.inventory import Inventory, take_inventory
from apisix_ingress.diagnostics.collect.leader import SeenLease, own_namespace, see_lease
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.config_map_ledger import ConfigMapLedger
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.settings import Settings
from providers.status.conditions import Conditions

Step = Callable[[str], None]
"""Receives a description of the current step."""


def quiet(what: str) -> None:
    """Ignore the step."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The state as it was read.

    Attributes:
        gateways: Every gateway cluster of the settings.
        at: When the gateways were read.
    """

    settings: Settings
    inventory: Inventory
    gateways: tuple[SeenGateway, ...]
    lease: SeenLease
    at: datetime

    def condition(self, key: ObjectKey) -> Condition | None:
        """Return the condition of an object for the present content of the gateways; None if it does not exist."""
        return Conditions(self.inventory.world, self.gateways).of(key)


@asynccontextmanager
async def api_server(settings: Settings) -> AsyncIterator[KubeApi]:
    """Provide a connection to the API server of the settings.

    Raises:
        ConfigError: No usable credentials.
    """
    async with await KubeApi.connect(settings.kubernetes.kubeconfig, settings.kubernetes.context) as api:
        yield api


async def look(
    api: KubeApi, settings: Settings, *, keep: bool = False, plugins: bool = False, step: Step = quiet
) -> ClusterState:
    """Read everything; `keep` and `plugins` as for the parts.

    Raises:
        KubeError: The API server is unreachable.
    """
    # It comes first, because it ends soon if the API server does not respond.
    inventory = await take_inventory(api, settings, keep=keep, step=step)
    lease = await see_lease(api, settings.kubernetes, MonotonicClock().now())
    step("reading gateways")
    ledger = ConfigMapLedger(api, own_namespace(settings.kubernetes, api), settings.kubernetes.controller_name)
    desired, moved = inventory.world.desired, inventory.moved
    gateways = await see_gateways(settings, desired, moved=moved, ledger=ledger, plugins=plugins)
    return ClusterState(settings, inventory, gateways, lease, MonotonicClock().now())
