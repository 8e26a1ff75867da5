"""The two sides that commands compare: the desired records, and those of a gateway cluster.

By default, problems of objects go to stderr, whatever the command prints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from apisix_ingress.commands.common.manifests import load_whole, read_whole_manifests
from apisix_ingress.commands.common.output import print_stderr
from apisix_ingress.commands.common.setup import Step
from apisix_ingress.diagnostics.collect.inventory import Inventory, take_inventory
from apisix_ingress.diagnostics.collect.leader import own_namespace
from apisix_ingress.diagnostics.collect.live_records import Snapshot, find_cluster, read_snapshot
from apisix_ingress.diagnostics.collect.offline import Outcome, complaints, follow_gateway, overlaid, settle, warnings
from apisix_ingress.diagnostics.reports.diff import Wanted
from apisix_ingress.errors import ConfigError, KubeError, KubeUnavailable, NoCredentials
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.config_map_ledger import ConfigMapLedger
from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.settings import Settings
from apisix_ingress.state.world import World
from apisix_ingress.wiring.clusters import ledger_name
from apisix_ingress.wiring.options import translation_options

Reporter: TypeAlias = Callable[[Iterable[str]], None]


async def both_sides(
    paths: Sequence[str],
    settings: Settings,
    cluster: str,
    step: Step = lambda what: None,
    *,
    whole: bool = True,
    report: Reporter = print_stderr,
) -> tuple[Wanted, Snapshot]:
    """Return the desired records, of manifests or else of the API server; and the records of a gateway cluster.

    Args:
        paths: Manifests; empty: the API server.
        settings: As configured for the controller.
        cluster: Name of the gateway cluster; empty: the first.
        step: Receives a description of the current step.
        whole: Whether the manifests are all objects; otherwise they are laid over the objects of the API server.
        report: Gets the problems of objects, as lines.

    Raises:
        ConfigError: A setting is invalid, or no cluster has the name.
        IngressError: The API server or the gateway did not respond, or rejected the request.
    """
    name = settings.clusters[find_cluster(settings, cluster)].name
    step("reading objects")
    if not paths:
        wanted, world = await _wanted_by_api(settings, name, report)
    elif whole:
        wanted, world = _wanted_by_files(paths, settings, report)
    else:
        wanted, world = await _wanted_with_files(paths, settings, name, report)
    step(f"reading gateway cluster {name}")
    snapshot = await read_snapshot(settings, name, wanted.desired)
    listing = snapshot.listing(wanted.ledger or ())
    if follow_gateway(world, translation_options(settings), name, {**listing.unclaimed, **listing.owned}):
        wanted = replace(wanted, owners=_owners(world))
        snapshot = await read_snapshot(settings, name, wanted.desired)
    return wanted, snapshot


def _wanted_by_files(paths: Sequence[str], settings: Settings, report: Reporter) -> tuple[Wanted, World]:
    """Return the records of manifests; report their problems.

    Raises:
        ConfigError: A file is missing or cannot be read.
    """
    found = read_whole_manifests(paths, settings)
    report([*found.warnings(), *found.problems()])
    return Wanted(found.outcome.wanted, found.outcome.owners), found.outcome.world


async def _wanted_with_files(
    paths: Sequence[str], settings: Settings, cluster: str, report: Reporter
) -> tuple[Wanted, World]:
    """Return the records of an API server's objects as they would be with the manifests applied.

    Without credentials, the manifests alone are translated, and records of other objects are not compared. Problems
    of objects in the manifests are reported.

    Raises:
        ConfigError: A file cannot be read, or the credentials are malformed.
        KubeError: As for `_wanted_by_api`.
    """
    loaded = load_whole(paths)
    given = frozenset(item.meta.key for item in loaded.objects)
    is_alone = False
    try:
        live, ledger = await _live_objects(settings, cluster, report)
    except NoCredentials:
        if settings.kubernetes.context:
            raise
        live, ledger, is_alone = [], None, True
    outcome = settle(overlaid(live, loaded.objects), translation_options(settings))
    shown = outcome if is_alone else _of_objects(outcome, given)
    report([*warnings(shown, loaded), *complaints(shown, loaded)])
    known = given if is_alone else None
    return Wanted(outcome.wanted, outcome.owners, ledger, known, None if is_alone else given), outcome.world


def _of_objects(outcome: Outcome, keys: Collection[ObjectKey]) -> Outcome:
    """Return an outcome without the problems of other objects."""
    return replace(
        outcome,
        problems=tuple((key, problem) for key, problem in outcome.problems if key in keys),
        left_out={key: why for key, why in outcome.left_out.items() if key in keys},
    )


async def _live_objects(
    settings: Settings, cluster: str, report: Reporter
) -> tuple[list[KubeObject], frozenset[RecordKey] | None]:
    async with await KubeApi.connect(settings.kubernetes.kubeconfig, settings.kubernetes.context) as api:
        inventory, ledger = await _read(api, settings, cluster, report)
    return [item for store in inventory.world.stores.values() for item in store.values()], ledger


async def _wanted_by_api(settings: Settings, cluster: str, report: Reporter) -> tuple[Wanted, World]:
    """Return the records of an API server's objects, and the records in its ledger.

    Raises:
        ConfigError: No credentials for the API server, or an object sets another address for the cluster.
        KubeError: It did not respond, or does not show everything: missing objects would look like deletes.
    """
    async with await KubeApi.connect(settings.kubernetes.kubeconfig, settings.kubernetes.context) as api:
        inventory, ledger = await _read(api, settings, cluster, report)
    reports = sorted(inventory.world.reports.items())
    report(f"{each.severity}: {owner}: {each}" for owner, found in reports for each in found.problems)
    return Wanted(inventory.world.desired, _owners(inventory.world), ledger), inventory.world


async def _read(
    api: KubeApi, settings: Settings, cluster: str, report: Reporter
) -> tuple[Inventory, frozenset[RecordKey] | None]:
    """Return all objects, and the records in the ledger of a gateway cluster."""
    inventory = await take_inventory(api, settings)
    ledger_at = _ledger_name(settings, cluster, inventory.moved.get(cluster))
    if inventory.unread:
        kind, why = min(inventory.unread.items())
        raise KubeUnavailable(f"{kind}: {why}: the comparison requires all objects")
    return inventory, await _ledger(api, settings, ledger_at, report)


def _owners(world: World) -> dict[RecordKey, ObjectKey]:
    """Return the owner of each record; if there are several, the one that wins."""
    desired = world.desired
    return {key: owner for key in desired.keys() for owner in desired.owners_of(key)[:1]}  # noqa: SIM118


def _ledger_name(settings: Settings, cluster: str, moved: AdminAddress | None) -> str:
    """Return the location of the ledger; a controller follows an ApisixClusterConfig to another gateway."""
    if moved is None:
        return cluster
    if moved.url != settings.clusters[find_cluster(settings, cluster)].admin_url:
        raise ConfigError(
            f"ApisixClusterConfig {cluster} sets the address {moved.url}, which differs from the settings: pass"
            " that address and its key with --admin-url and --admin-key, which apply to the first cluster of the"
            " settings"
        )
    return ledger_name(cluster, moved.url, home="")


async def _ledger(api: KubeApi, settings: Settings, cluster: str, report: Reporter) -> frozenset[RecordKey] | None:
    namespace = own_namespace(settings.kubernetes, api)
    try:
        return await ConfigMapLedger(api, namespace, settings.kubernetes.controller_name).keys(cluster)
    except KubeError as error:
        report([f"warning: cannot read the ledger in namespace {namespace}: {error}"])
        return None
