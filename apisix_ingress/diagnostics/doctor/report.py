"""The document of `doctor`: every check in order, and a summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from apisix_ingress.diagnostics.collect.cluster_state import ClusterState, Step, api_server, look, quiet
from apisix_ingress.diagnostics.collect.gateway_state import see_gateways
from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor import api_server as doctor_api
from apisix_ingress.diagnostics.doctor import certificates as doctor_hook
from apisix_ingress.diagnostics.doctor.check import Check, fail, ok, warn
from apisix_ingress.diagnostics.doctor.gateway_api import check_gateway_api, check_loopback
from apisix_ingress.diagnostics.doctor.gateways import check_gateway
from apisix_ingress.diagnostics.doctor.ingress_addresses import check_addresses
from apisix_ingress.errors import ConfigError, KubeError
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.settings import Settings
from apisix_ingress.settings.warnings import cautions

LEVELS = ("FAIL", "WARN", "SKIP", "OK")


async def examine(
    settings: Settings, *, account: str = "", step: Step = quiet, clock: Clock | None = None
) -> list[Check]:
    """Run all checks; an unreachable component affects only its own checks.

    Args:
        settings: As configured for the controller.
        account: `namespace/name` of the service account to check; empty: the current credentials.
        step: Receives a description of the current step.
        clock: This machine's clock.
    """
    clock = clock or MonotonicClock()
    checks = list(_of_settings(settings))
    try:
        async with api_server(settings) as api:
            found, seen = await examine_api(api, settings, account=account, step=step, clock=clock)
    except ConfigError as error:
        return [*checks, _away(error), *await _gateways_alone(settings)]
    checks += found
    if seen is None:
        return [*checks, *await _gateways_alone(settings)]
    return [*checks, *checks_of_gateways(seen)]


async def examine_api(
    api: KubeApi, settings: Settings, *, account: str, step: Step, clock: Clock, seen: ClusterState | None = None
) -> tuple[list[Check], ClusterState | None]:
    """Check the API server; return the state that was read, None if it does not respond.

    With `seen`, nothing is listed again.
    """
    step("reading the API server")
    checks = await doctor_api.check_server(api, clock)
    if checks[0].level == "FAIL":
        return checks, None
    checks += [await doctor_api.check_rights(api, settings, account), *await doctor_api.check_crds(api)]
    checks.append(await check_gateway_api(api, enabled=settings.gateway_api.enabled is not False))
    try:
        seen = seen or await look(api, settings, plugins=True, step=step)
        checks += await _of_look(api, seen, clock)
    except KubeError as error:
        return [*checks, _away(error)], None
    return checks, seen


async def _of_look(api: KubeApi, seen: ClusterState, clock: Clock) -> list[Check]:
    kubernetes, inventory = seen.settings.kubernetes, seen.inventory
    return [
        doctor_api.check_objects(inventory),
        doctor_api.check_classes(inventory, kubernetes),
        check_addresses(inventory, kubernetes.status),
        check_loopback(inventory, kubernetes.status),
        doctor_api.check_lease(seen.lease),
        await doctor_api.check_twins(api, kubernetes, clock),
        *doctor_hook.check_certificates(inventory, clock.now()),
        *await doctor_hook.check_webhook(api, seen.settings.webhook, inventory, clock.now()),
    ]


def checks_of_gateways(seen: ClusterState) -> list[Check]:
    """Return the checks of every gateway cluster that was read."""
    return [
        check
        for gateway, cluster in zip(seen.gateways, seen.settings.clusters, strict=True)
        for check in check_gateway(gateway, cluster, seen.inventory)
    ]


async def _gateways_alone(settings: Settings) -> list[Check]:
    """Check the gateways without knowing the desired records."""
    none: Inventory | None = None
    gateways = await see_gateways(settings, None)
    pairs = zip(gateways, settings.clusters, strict=True)
    return [check for gateway, cluster in pairs for check in check_gateway(gateway, cluster, none)]


def _of_settings(settings: Settings) -> Iterator[Check]:
    found = list(cautions(settings))
    for caution in found:
        what, _, remedy = caution.rpartition(": ")
        yield warn("settings", what, remedy)
    if not found:
        yield ok("settings", "valid")


def _away(error: Exception) -> Check:
    return fail("api-server", str(error), "check the kubeconfig, and that the API server runs")


def refused_settings(error: ConfigError) -> list[Check]:
    """Return the checks for invalid settings: nothing else can be checked."""
    return [
        fail("settings", line, "correct the settings; validate them with check-config FILE")
        for line in str(error).splitlines()
    ]


def doctor_document(checks: list[Check]) -> JsonObject:
    """Return the checks as a document."""
    counts = {level: sum(check.level == level for check in checks) for level in LEVELS}
    return {"healthy": not counts["FAIL"], "counts": counts, "checks": [asdict(check) for check in checks]}


def doctor_lines(document: JsonObject) -> Iterator[str]:
    """Yield the document as text; a line that begins with a level is a result."""
    for check in document["checks"]:
        yield f"{check['level']:4} {check['name']}: {check['message']}"
        if check["fix"]:
            yield f"     fix: {check['fix']}"
    yield ", ".join(f"{count} {level}" for level, count in document["counts"].items() if count)
