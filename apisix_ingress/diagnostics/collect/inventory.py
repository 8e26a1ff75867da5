"""The objects of an API server, listed once and translated: the state of the controller without its watches."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from apisix_ingress.errors import KubeError, KubeForbidden, KubeNotFound, KubeTimeout, KubeUnavailable, KubeUnreachable
from apisix_ingress.kube.client.api import LIST_SECONDS, KubeApi
from apisix_ingress.kube.client.json_depth import check_depth
from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, DECODE_ERRORS
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.settings import Settings
from apisix_ingress.state.world import World
from apisix_ingress.wiring.options import translation_options
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from translation.core.options import Options

PAGE = 500
"""Objects per request."""

AT_ONCE = 8
"""Maximum number of lists in flight."""

ANSWER_SECONDS = 10.0
"""Timeout of a first, small response in seconds; a page of large objects may take longer."""

_AWAY = (KubeUnreachable, KubeTimeout)
"""Any further request would fail in the same way, or wait as long."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Objects and their records.

    Attributes:
        world: Stores, desired records, reports.
        options: The options of the translation.
        unread: Kind → why its objects could not be read, or not all of them.
        failed: Those of them whose list failed in the API server; a retry may succeed.
        absent: Kinds that the API server does not know.
        moved: Gateway cluster → the Admin API address in an ApisixClusterConfig.
        raw: The objects as returned by the API server; empty unless requested.
    """

    world: World
    options: Options
    unread: Mapping[str, str] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    moved: Mapping[str, AdminAddress] = field(default_factory=dict)
    raw: Mapping[ObjectKey, JsonObject] = field(default_factory=dict, repr=False)

    def ours(self) -> tuple[CustomObject, ...]:
        """Return the served objects of users, sorted by key."""
        reports, stores = self.world.reports, self.world.stores
        found = (stores[key.kind].get(key) for key in sorted(reports) if key.kind in stores)
        return tuple(item for item in found if isinstance(item, CustomObject))

    def winners(self) -> dict[RecordKey, tuple[ObjectKey, Record]]:
        """Return every record that wins its key, with its owner, without records that are never created."""
        desired, found = self.world.desired, {}
        for key in desired.keys():  # noqa: SIM118  # not a mapping
            owner = self.owner_of(key)
            record = desired.of_owner(owner)[key] if owner else None
            if owner is not None and record is not None and not record.existing_only:
                found[key] = (owner, record)
        return found

    def owner_of(self, key: RecordKey) -> ObjectKey | None:
        """Return the owner of a desired record; if there are several, the one that wins."""
        return next(iter(self.world.desired.owners_of(key)), None)


class _Reader:
    """Reads lists into stores, and records what could not be read."""

    def __init__(self, api: KubeApi, world: World, *, keep: bool) -> None:
        self._api = api
        self._world = world
        self._keep = keep
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.raw: dict[ObjectKey, JsonObject] = {}
        self.unread: dict[str, str] = {}
        self.failed: set[str] = set()
        self.absent: set[str] = set()

    async def read(self, resource: Resource, namespace: str) -> None:
        """Read a kind, in a namespace or everywhere.

        Raises:
            KubeUnreachable: The API server is unreachable.
            KubeTimeout: It does not respond; every other failure is recorded.
        """
        async with self._slots:
            try:
                await self._read_any_version(resource, namespace)
            except _AWAY:
                raise
            except KubeForbidden as error:
                where = f" in namespace {namespace}" if namespace else ""
                self.unread[resource.kind] = f"these credentials may not list {resource.plural}{where} ({error})"
            except KubeError as error:
                self.unread[resource.kind] = str(error)
                if isinstance(error, KubeUnavailable):
                    self.failed.add(resource.kind)

    async def _read_any_version(self, resource: Resource, namespace: str) -> None:
        for version in resource.versions():
            try:
                await self._read_pages(version, namespace)
                return
            except KubeNotFound:
                continue
        self.absent.add(resource.kind)
        if not resource.optional:
            self.unread[resource.kind] = f"the API server does not have {resource.api_version} {resource.plural}"

    async def _read_pages(self, resource: Resource, namespace: str) -> None:
        only = resource.only
        path = resource.path(only.namespace if only else namespace)
        fields = f"metadata.name={only.name}" if only else ""
        async for raw in listed(self._api, path, fields=fields, labels=resource.labels):
            self._take(resource, raw)

    def _take(self, resource: Resource, raw: JsonObject) -> None:
        try:
            if resource.group == CUSTOM_GROUP:
                check_depth({**raw, "metadata": None})
            item = resource.decode(raw)
        except DECODE_ERRORS as error:
            self.unread[resource.kind] = f"an object cannot be read ({type(error).__name__})"
            return
        self._world.stores[resource.kind].set(item)
        if self._keep:
            self.raw[item.meta.key] = {"apiVersion": resource.api_version, "kind": resource.kind, **raw}


async def listed(api: KubeApi, path: str, *, fields: str = "", labels: str = "") -> AsyncIterator[JsonObject]:
    """Yield every object of a collection, page by page."""
    more = ""
    while True:
        page = await api.page(path, limit=PAGE, more=more, fields=fields, labels=labels, timeout=LIST_SECONDS)
        for raw in page.items:
            yield raw
        if not (more := page.more):
            return


async def take_inventory(
    api: KubeApi, settings: Settings, *, keep: bool = False, step: Callable[[str], None] = lambda what: None
) -> Inventory:
    """Read every kind that the controller reads with these settings, and translate the served objects.

    Args:
        api: The API server.
        settings: As configured for the controller.
        keep: Whether to keep the objects as returned by the API server.
        step: Receives a description of the current step.

    Raises:
        KubeError: The API server is unreachable, does not respond, or rejects the credentials.
    """
    options = translation_options(settings)
    world = World(resources(options), wide_ids=options.record_ids == "wide")
    moves = _Moves()
    registry = Registry(world, options, moves, clock=MonotonicClock(), rng=random.Random(0))
    reader = _Reader(api, world, keep=keep)
    step("reading objects")
    await _find(api)
    try:
        async with asyncio.TaskGroup() as lists:
            for each in _lists(options, settings.kubernetes.watch_namespaces):
                lists.create_task(reader.read(*each))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    step("translating")
    registry.settle()
    return Inventory(
        world,
        options,
        unread=reader.unread,
        failed=frozenset(reader.failed),
        absent=frozenset(reader.absent),
        moved=moves.moved,
        raw=reader.raw,
    )


async def _find(api: KubeApi) -> None:
    """Raise if the API server is unreachable or silent, or rejects the credentials.

    Any other response is sufficient.
    """
    try:
        await api.get("/version", timeout=ANSWER_SECONDS)
    except _AWAY:
        raise
    except KubeError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise KubeForbidden(f"{error}; it rejects these credentials", status=error.status) from None


def _lists(options: Options, namespaces: tuple[str, ...]) -> Iterator[tuple[Resource, str]]:
    """Yield each list to read: a kind, and the namespace, empty for all of them."""
    for resource in resources(options):
        if namespaces and resource.namespaced and resource.only is None:
            yield from ((resource, namespace) for namespace in namespaces)
        else:
            yield resource, ""


class _Moves(ChangeSink):
    """The addresses of clusters in ApisixClusterConfigs; nothing else of the translations is needed."""

    def __init__(self) -> None:
        self.moved: dict[str, AdminAddress] = {}

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        """Keep the last address."""
        if address is None:
            self.moved.pop(name, None)
        else:
            self.moved[name] = address
