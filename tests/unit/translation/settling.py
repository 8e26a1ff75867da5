"""The kinds of these tests through the product's providers and through the golden driver, and their golden cases."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from apisix_ingress.model import kube
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.resources import CUSTOM_GROUP, RESOURCES, Resource
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.state.world import World
from providers import registry
from providers.cluster_config import ClusterConfigProvider
from providers.consumer import ConsumerProvider
from providers.global_rule import GlobalRuleProvider
from providers.plugin_metadata import PluginMetadataProvider
from providers.tls import TlsProvider
from tests.golden import driver
from tests.golden.cases import Case, document, normal
from tests.unit.translation.objects import OPTIONS
from translation.cluster_config import translate_cluster_config
from translation.consumer import translate_consumer
from translation.context import Options
from translation.global_rule import PLUGIN_INDEX, translate_global_rule
from translation.plugin_metadata import translate_plugin_metadata
from translation.tls import translate_tls

PROVIDERS = (TlsProvider, ConsumerProvider, GlobalRuleProvider, ClusterConfigProvider, PluginMetadataProvider)

TRANSLATORS = {
    "ApisixTls": translate_tls,
    "ApisixConsumer": translate_consumer,
    "ApisixGlobalRule": translate_global_rule,
    "ApisixClusterConfig": translate_cluster_config,
    "ConfigMap": translate_plugin_metadata,
}


def _enabled_plugins(item: kube.CustomObject) -> Iterable[str]:
    plugins = item.spec.get("plugins")
    found = (plugin for plugin in plugins if isinstance(plugin, dict)) if isinstance(plugins, list) else ()
    return {
        name for plugin in found if plugin.get("enable") is not False and isinstance(name := plugin.get("name"), str)
    }


def _custom(kind: str, plural: str, *, namespaced: bool = True, indexed: bool = False) -> Resource:
    decode, indexes = partial(kube.decode_custom, kind=kind), {PLUGIN_INDEX: _enabled_plugins} if indexed else {}
    return Resource(kind, CUSTOM_GROUP, "v2", plural, decode, namespaced=namespaced, optional=True, indexes=indexes)


KINDS = {
    resource.kind: resource
    for resource in (
        Resource("ConfigMap", "", "v1", "configmaps", kube.decode_config_map),
        _custom("ApisixTls", "apisixtlses"),
        _custom("ApisixConsumer", "apisixconsumers"),
        _custom("ApisixGlobalRule", "apisixglobalrules", indexed=True),
        _custom("ApisixClusterConfig", "apisixclusterconfigs", namespaced=False),
    )
} | dict(RESOURCES)
"""Every kind; the table of the product counts where it has one."""


def world(*objects: JsonObject) -> World:
    found = World(KINDS.values())
    for raw in objects:
        found.stores[raw["kind"]].set(KINDS[raw["kind"]].decode(raw))
    return found


class _Nowhere:
    """A sink for what nothing follows."""

    def mark_dirty(self, keys: Iterable[RecordKey], *, urgent: bool) -> None:
        """Forget it."""

    def reported(self, owner: ObjectKey, *, well: bool) -> None:
        """Forget it."""


def prepare(
    monkeypatch: pytest.MonkeyPatch, *objects: JsonObject, options: Options = OPTIONS, clock: Clock | None = None
) -> tuple[World, registry.Registry]:
    """Return a world of objects, and the product's providers with those of these kinds, which have yet to run."""
    monkeypatch.setattr(registry, "PROVIDERS", tuple(dict.fromkeys((*registry.PROVIDERS, *PROVIDERS))))
    found = world()
    clock = clock or MonotonicClock()
    loop = registry.Registry(found, options, _Nowhere(), clock=clock, rng=random.Random(0))
    for raw in objects:
        found.stores[raw["kind"]].set(KINDS[raw["kind"]].decode(raw))
    return found, loop


def settle(monkeypatch: pytest.MonkeyPatch, *objects: JsonObject) -> World:
    """Return the world after the providers have translated everything."""
    found, loop = prepare(monkeypatch, *objects)
    loop.settle()
    return found


def bodies(found: World, cluster: str = "default") -> dict[str, FrozenJson]:
    """Return what a gateway cluster should have, by the path of the record."""
    return {str(key): record.body for key, record in found.desired.records(cluster).items()}


def problems(found: World) -> dict[str, list[str]]:
    """Return the codes of the problems of every object that is ours."""
    return {str(owner): [problem.code for problem in report.problems] for owner, report in found.reports.items()}


def cases(*prefixes: str) -> list[Case]:
    """Return the golden cases whose names begin so."""
    root = Path(driver.__file__).parent / "oracle"
    found = [Case(path.parent) for path in sorted(root.glob("**/in.yaml")) if path.parent.name.startswith(prefixes)]
    assert found
    return found


def compare(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Compare every state of a golden case with what a controller makes of it."""
    monkeypatch.setattr(driver, "TRANSLATORS", {**driver.TRANSLATORS, **TRANSLATORS})
    monkeypatch.setattr(driver, "RESOURCES", KINDS)
    controller = driver.Driver(case.options())
    got = [normal(document(controller.apply(case.objects(state)))) for state in case.states]
    assert got == [case.want(state) for state in case.states]
