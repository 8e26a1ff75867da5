"""Objects through the product's providers."""

from __future__ import annotations

import random
from dataclasses import replace

from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.runtime.clock import Clock, MonotonicClock
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry
from tests.unit.translation.objects import OPTIONS, fill, world
from translation.core.options import Options

METADATA_SOURCE = ObjectKey("ConfigMap", "ingress-apisix", "plugin-metadata")

WITH_METADATA = replace(OPTIONS, plugin_metadata=METADATA_SOURCE)


def prepare(
    *objects: JsonObject, options: Options = WITH_METADATA, clock: Clock | None = None
) -> tuple[World, Registry]:
    """Return a world of objects, and the providers, which have not run yet."""
    found = world()
    loop = Registry(found, options, ChangeSink(), clock=clock or MonotonicClock(), rng=random.Random(0))
    fill(found, objects)
    return found, loop


def settle(*objects: JsonObject, options: Options = WITH_METADATA) -> World:
    """Return the world after the providers have translated everything."""
    found, loop = prepare(*objects, options=options)
    loop.settle()
    return found


def bodies(found: World, cluster: str = "default") -> dict[str, FrozenJson]:
    """Return the records that a gateway cluster should have, by path."""
    return {str(key): record.body for key, record in found.desired.records(cluster).items()}


def problems(found: World) -> dict[str, list[str]]:
    """Return the codes of the problems of every served object."""
    return {str(owner): [problem.code for problem in report.problems] for owner, report in found.reports.items()}
