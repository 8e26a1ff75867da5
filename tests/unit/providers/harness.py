"""A loop with two scripted kinds, to test providers without a real translation.

The spec of a route defines the result of its translation; Services own one upstream for each claim on them.
"""

import random
from collections.abc import Collection
from functools import cached_property
from typing import Any

import pytest

from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, KubeObject, Secret, Service
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Former, Record
from apisix_ingress.state.claims import weakened
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.view import View
from apisix_ingress.state.world import World
from providers.core import registry
from providers.core.base import Provider
from providers.core.deps import ChangeSink
from providers.namespace import NamespaceProvider
from providers.pod import PodProvider
from tests.factories import make_claim, make_custom, make_key, make_record
from tests.fakes.clock import FakeClock
from translation.core.options import Options
from translation.core.outcome import NOT_SERVED, KeepLast, Outcome, Published, Withdrawn

KINDS = ("Namespace", "Pod", "Service", "EndpointSlice", "Secret", "ApisixRoute")


def make_route(name: str = "web", *, namespace: str = "default", created: str = "1", **spec: Any) -> CustomObject:
    """Return a route whose translation follows its spec.

    `records` maps names to uris, `body` has further fields of them, `claims` lists Services, `reads` lists Secrets that
    must exist, `error` and `warning` are the message of a problem, `withdrawn` is the reason of a withdrawal, `crash`
    raises, `loops` queues the route again, `seconds` is how long it takes.
    """
    return make_custom(name, namespace=namespace, created=created, spec=spec)


class Routes(Provider[CustomObject]):
    """Routes as their specs script them; counts translations by name."""

    kind = "ApisixRoute"
    workers = 1
    translated: dict[str, int]

    def translate(self, item: CustomObject, view: View) -> Outcome:
        self.translated = {**getattr(self, "translated", {})}
        self.translated[item.meta.name] = self.translated.get(item.meta.name, 0) + 1
        namespace, spec = item.meta.namespace, item.spec
        secrets = [make_key(name, kind="Secret", namespace=namespace) for name in spec.get("reads", ())]
        missing = [Problem("SecretNotFound", str(key)) for key in secrets if view.get(Secret, key) is None]
        if spec.get("crash"):
            raise ZeroDivisionError(item.meta.name)
        if spec.get("seconds"):
            assert isinstance(self._clock, FakeClock)
            self._clock.shift(spec["seconds"])
        if spec.get("loops"):
            self._router.enqueue(item.meta.key)
        reported = [Problem("Bad", spec["error"])] if "error" in spec else []
        reported += [Problem("Odd", spec["warning"], severity="warning")] if "warning" in spec else []
        problems = (*missing, *reported)
        claims = tuple(make_claim(service) for service in spec.get("claims", ()))
        protected = (Hold("routes", f"{namespace}_{item.meta.name}_"),)
        if "withdrawn" in spec:
            return Withdrawn(spec["withdrawn"], problems)
        if any(problem.severity == "error" for problem in problems):
            return KeepLast(protected, weakened(claims), problems=problems)
        records = tuple(
            make_record(name, id=view.record_id("routes", name), body={"uri": uri, **spec.get("body", {})})
            for name, uri in spec.get("records", {}).items()
        )
        return Published(records, claims, protected, problems=problems)


class Services(Provider[Service]):
    """Services with an upstream for each claim on them; counts translations."""

    kind = "Service"
    workers = 1
    urgent = True
    translated = 0
    slow = ""
    """The namespace whose Services take two seconds."""

    @cached_property
    def seen(self) -> list[str]:
        """The namespaces of Services that were translated."""
        return []

    def evaluate(self, key: ObjectKey, item: Service | None, view: View) -> Outcome:
        claims = view.claims_on(key)
        if not claims:
            return NOT_SERVED
        self.translated += 1
        self.seen.append(key.namespace)
        if key.namespace == self.slow:
            assert isinstance(self._clock, FakeClock)
            self._clock.shift(2.0)
        name = f"{key.namespace}_{key.name}_80"
        id_ = view.record_id("upstreams", name)
        body = {"nodes": [item.cluster_ip] if item else []}
        weak = all(claim.weak for _, claim in claims)
        return Published((make_record(name, kind="upstreams", id=id_, body=body, existing_only=weak),))

    def translate(self, item: Service, view: View) -> Outcome:
        raise AssertionError("evaluate translates Services, whether or not they exist")


class Sink(ChangeSink):
    """Records its calls."""

    def __init__(self) -> None:
        self.dirty: list[tuple[frozenset[RecordKey], bool]] = []
        self.owners: list[ObjectKey] = []

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        self.dirty.append((frozenset(keys), urgent))

    def reported(self, owner: ObjectKey) -> None:
        self.owners.append(owner)


class ProviderHarness:
    """World, registry and sink, driven by `settle` or by the workers of `registry.run`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, options: Options | None = None) -> None:
        monkeypatch.setattr(registry, "provider_classes", lambda: (Routes, Services, NamespaceProvider, PodProvider))
        self.world = World([RESOURCES[kind] for kind in KINDS])
        self.sink = Sink()
        self.clock = FakeClock()
        self.registry = registry.Registry(
            self.world, options or Options(), self.sink, clock=self.clock, rng=random.Random(1)
        )

    def put(self, *objects: KubeObject) -> None:
        """Store objects as a reflector does."""
        for item in objects:
            self.world.stores[item.meta.kind].set(item)

    def delete(self, item: KubeObject) -> None:
        self.world.stores[item.meta.kind].delete(item.meta.key)

    def settle(self, *objects: KubeObject) -> None:
        """Store objects, clear the recorded calls, and translate until nothing is queued."""
        self.sink.dirty.clear()
        self.sink.owners.clear()
        self.put(*objects)
        self.registry.settle()

    @property
    def dirty(self) -> set[RecordKey]:
        """The keys marked dirty since the last `settle` began."""
        return {key for keys, _ in self.sink.dirty for key in keys}

    @property
    def wanted(self) -> dict[str, Record]:
        """The desired records, by name."""
        return {record.name: record for record in self.world.desired.records("any").values()}

    def uris(self) -> dict[str, str]:
        """Return the uris of the desired routes, by name."""
        return {name: record.body["uri"] for name, record in self.wanted.items() if record.key.kind == "routes"}

    def problems(self, item: KubeObject) -> list[str]:
        """Return the report of an object."""
        return [problem.message for problem in self.world.reports[item.meta.key].problems]

    def translated(self, name: str) -> int:
        """Return the number of translations of a route."""
        routes = self.registry.providers["ApisixRoute"]
        assert isinstance(routes, Routes)
        return routes.translated.get(name, 0)

    @property
    def services(self) -> Services:
        """The provider of Services."""
        provider = self.registry.providers["Service"]
        assert isinstance(provider, Services)
        return provider
