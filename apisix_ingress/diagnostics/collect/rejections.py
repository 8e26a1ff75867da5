"""Which of the records that a sync would write the gateway would reject; it is asked without writing anything."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.diagnostics.collect.live_records import Snapshot, admin_api
from apisix_ingress.diagnostics.reports.diff import Wanted, plan_of, table_of
from apisix_ingress.settings import Settings


async def with_rejections(wanted: Wanted, snapshot: Snapshot, settings: Settings) -> Snapshot:
    """Return a snapshot that knows why the gateway would reject desired records.

    Raises:
        ConfigError: The key or certificate of the cluster is invalid.
        GatewayError: The gateway did not respond.
    """
    upserts = plan_of(wanted, snapshot, table_of(wanted, snapshot)).upserts
    desired = (wanted.desired.get(key, snapshot.cluster) for key in upserts if key.kind not in snapshot.disabled)
    records = [record for record in desired if record is not None]
    if not records:
        return snapshot
    async with admin_api(settings, snapshot.cluster) as backend:
        return replace(snapshot, rejected=await backend.validate(records))
