"""The checks of `doctor` on the Gateway API: the CRDs, and whether gateways can reach themselves."""

from __future__ import annotations

from collections.abc import Iterable

from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor.check import Check, ok, skip, warn
from apisix_ingress.diagnostics.doctor.ingress_addresses import front_service
from apisix_ingress.errors import KubeError, KubeNotFound
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.kinds.extensions import EXTENSION_ROWS
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE, GATEWAY_GROUP, GATEWAY_ROWS
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.settings.sections import StatusSettings
from translation.gateway.own_address import wrong_loopback

_NAME = "gateway-api"
_LOOPBACK = "gateway-loopback"
_CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gateways.{GATEWAY_GROUP}"
_ROWS = tuple(row for row in GATEWAY_ROWS if row.kind != CA_BUNDLE)


def check_loopback(inventory: Inventory, settings: StatusSettings) -> Check:
    """Return whether gateways can reach themselves for mirrored requests and the filter ExternalAuth."""
    if not any(item.meta.kind == "Gateway" for item in inventory.ours()):
        return skip(_LOOPBACK, "there are no Gateways")
    front = front_service(inventory, settings.publish_service)
    if front is None:
        return skip(_LOOPBACK, "cannot be determined: the Service in front of the gateways is unknown")
    options = inventory.options
    if why := wrong_loopback(front, inventory.world.view(), options.loopback):
        problem, _, fix = why.rpartition("; ")
        return warn(_LOOPBACK, problem, fix)
    return ok(_LOOPBACK, f"nothing contradicts gateway_api.loopback ({options.loopback})")


async def check_gateway_api(api: KubeApi, *, enabled: bool) -> Check:
    """Report the installed kinds of the Gateway API. None of them has to be installed."""
    if not enabled:
        return ok(_NAME, "not read: gateway_api.enabled is false")
    try:
        found, absent = await _served(api, _ROWS)
        if not found:
            return ok(_NAME, "its CRDs are not installed; their kinds are served as soon as they are")
        extensions, _ = await _served(api, EXTENSION_ROWS)
        release = await _release(api)
    except KubeError as error:
        return skip(_NAME, f"cannot be determined: {error}")
    parts = [f"{release}{', '.join(found)}"]
    parts += [f"not installed: {', '.join(absent)}"] if absent else []
    parts += [f"kinds of 2.x: {', '.join(extensions)}"] if extensions else []
    return ok(_NAME, "; ".join(parts))


async def _served(api: KubeApi, rows: Iterable[Resource]) -> tuple[list[str], list[str]]:
    """Return the kinds that are served, with the version that is read, and the others."""
    found, absent = [], []
    for row in rows:
        served = [each.version for each in row.versions() if await api.discovery.serves(each)]
        if served:
            found.append(f"{row.kind} {served[0]}")
        else:
            absent.append(row.kind)
    return found, absent


async def _release(api: KubeApi) -> str:
    """Return the release and channel of the CRDs, for a message; empty if unknown."""
    try:
        raw = await api.get(_CRD)
    except KubeNotFound:
        return ""
    annotations = (raw.get("metadata") or {}).get("annotations") or {}
    version = annotations.get(f"{GATEWAY_GROUP}/bundle-version")
    channel = annotations.get(f"{GATEWAY_GROUP}/channel")
    named = f"{version} ({channel})" if channel else version
    return f"{named}: " if version else ""
