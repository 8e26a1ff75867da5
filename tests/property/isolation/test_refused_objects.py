"""Objects that are refused: adding or removing one changes no record, status or condition of another owner."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.assessment import Assessment
from apisix_ingress.model.json import JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.network.host_claims import HOST_READERS, claimed_hosts, claimed_name, wildcards_over
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.settings import MULTI_TENANT, PRESETS
from apisix_ingress.state.world import World
from tests.property.isolation.mixed_objects import MAKERS, objects, surroundings
from tests.unit.translation.objects import fill
from tests.unit.translation.settling import prepare
from translation.core.options import Options
from translation.gateway.statuses import ROUTE_KINDS
from translation.hosts.host_owners import HostOwners
from translation.nginx.options import NginxOptions

PRESET = Options(**PRESETS[MULTI_TENANT], published_keys="refuse", nginx=NginxOptions())  # type: ignore[arg-type]

POOL = replace(PRESET, gateway_addresses=("192.0.2.1", "192.0.2.2"))
"""Gateways compete for addresses."""

OF_OPERATORS = {
    "Namespace",
    "IngressClass",
    "GatewayClass",
    "ApisixGlobalRule",
    "ApisixClusterConfig",
    "ApisixSecretManager",
}
"""Kinds that tenants may not write."""

SETS = 150


def test_every_kind_that_tenants_may_write_is_generated() -> None:
    assert MAKERS.keys() == RESOURCES.keys() - OF_OPERATORS


def key_of(raw: JsonObject) -> ObjectKey:
    return ObjectKey(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])


def of_others(found: World, key: ObjectKey) -> dict[str, Any]:
    """Return what the owners outside the namespace of an object have: records, problems, assessments, attached routes.

    A policy may refuse a route of its own namespace, which is no longer attached then.
    """
    namespace = key.namespace
    got: dict[str, Any] = {}
    for id_, record in found.desired.records("default").items():
        owners = [owner for owner in found.desired.owners_of(id_) if owner.namespace != namespace]
        if owners:
            got[str(id_)] = (owners[0], record.body)
    for owner, report in found.reports.items():
        if owner.namespace != namespace and (report.problems or report.assessment):
            got[f"report {owner}"] = (sorted(report.problems, key=str), report.assessment)
    if key.kind in ROUTE_KINDS:
        counts = found.attachments.counts.items()
        got |= {f"attached {each}": count for each, count in counts if each.owner.namespace != namespace}
    return got


def parents(found: World, owner: ObjectKey) -> set[ObjectKey]:
    """Return the Gateways and ListenerSets that an object names."""
    item = found.stores[owner.kind].get(owner)
    if not isinstance(item, CustomObject):
        return set()
    single = (mapping_in(item.spec.get(name)) for name in ("parentRef", "gatewayRef"))
    references = [*map(mapping_in, list_in(item.spec.get("parentRefs"))), *single]
    return {
        ObjectKey(str(each.get("kind", "Gateway")), str(each.get("namespace", owner.namespace)), str(each.get("name")))
        for each in references
    }


def is_refused(found: World, key: ObjectKey) -> bool:
    """Return whether nothing is published for an object, because of a problem of its own."""
    report = found.reports.get(key)
    if report is None or found.desired.of_owner(key):
        return False
    assessment = report.assessment or Assessment()
    parts = [assessment.verdicts]
    parts += [each.verdicts for each in assessment.parents]
    parts += [each.verdicts for each in assessment.listeners]
    if accepted := [each.holds for part in parts for each in part if each.type == "Accepted"]:
        return not any(accepted)
    return any(problem.severity in ("error", "degraded") for problem in report.problems) and not is_served_by_host(
        found, key
    )


def is_served_by_host(found: World, key: ObjectKey) -> bool:
    """Return whether an Ingress of ingress-nginx takes part in a host that its namespace owns."""
    item = found.stores[key.kind].get(key)
    return (
        key.kind == "Ingress"
        and isinstance(item, CustomObject)
        and item.spec.get("ingressClassName") == "nginx"
        and any(not HostOwners(found.view(), PRESET).refusal(key.namespace, host) for host in claimed_hosts(item))
    )


def keeps_its_place(found: World, item: CustomObject) -> bool:
    """Return whether an object has a mistake that does not cost it the place that it has among others.

    Otherwise, others would take the address of a Gateway whose CA is missing for a moment. A route without hostnames
    shares the hosts of a listener with all others, and their order does not depend on mistakes.
    """
    texts = [str(problem) for problem in found.reports[item.meta.key].problems]
    is_invalid = any(problem.severity == "error" for problem in found.reports[item.meta.key].problems)
    shares = item.meta.kind in ("HTTPRoute", "GRPCRoute") and not item.spec.get("hostnames")
    return (shares and is_invalid) or (item.meta.kind == "Gateway" and any("NoValidCACertificate" in t for t in texts))


def dependent(found: World, key: ObjectKey) -> set[ObjectKey]:
    """Return the objects that name an object as their parent, and the objects that name one of these."""
    children = {owner for owner in found.reports if key in parents(found, owner)}
    return children | {owner for owner in found.reports if not children.isdisjoint(parents(found, owner))}


def is_parent_of_others(found: World, key: ObjectKey) -> bool:
    """Return whether objects of other namespaces depend on an object."""
    return any(owner.namespace != key.namespace for owner in dependent(found, key))


def hostnames(item: CustomObject) -> Iterator[str]:
    """Yield the hostnames of listeners, which may use hosts without claiming them."""
    for each in map(mapping_in, list_in(item.spec.get("listeners"))):
        yield claimed_name(str(each.get("hostname") or ""))


def holds_names(found: World, item: CustomObject) -> bool:
    """Return whether an object owns hosts that another namespace also names: a refused object keeps its hosts.

    Routes and ListenerSets have hosts only with their Gateway.
    """
    below = (found.stores[key.kind].get(key) for key in dependent(found, item.meta.key))
    every = [each for each in (item, *below) if each is not None and each.meta.kind in HOST_READERS]
    names = {name for each in every for name in HostOwners(found.view(), PRESET).owned(each)}
    others = {
        name
        for kind in HOST_READERS
        for each in found.stores[kind].values()
        if each.meta.namespace != item.meta.namespace
        for host in (*claimed_hosts(each), *hostnames(each))
        for name in (host, *wildcards_over(host))
    }
    return any(name in others or not others.isdisjoint(wildcards_over(name)) for name in names)


def check(seed: int) -> int:
    """Remove and add each refused object of a set; return how many there were."""
    every = objects(random.Random(seed))
    found, loop = prepare(*surroundings(), *every, options=POOL if seed % 4 == 3 else PRESET)
    loop.settle()
    count = 0
    for raw in every:
        key = key_of(raw)
        item = found.stores[key.kind].get(key)
        if not is_refused(found, key) or is_parent_of_others(found, key):
            continue
        if isinstance(item, CustomObject) and (holds_names(found, item) or keeps_its_place(found, item)):
            continue
        count += 1
        before = of_others(found, key)
        found.stores[key.kind].delete(key)
        loop.settle()
        assert of_others(found, key) == before, f"removal of {key} in seed {seed}"
        fill(found, [raw])
        loop.settle()
        assert of_others(found, key) == before, f"addition of {key} in seed {seed}"
    return count


def without(raw: Any, refused: set[str]) -> Any:
    """Return a manifest without some hosts; None where only refused hosts were."""
    if isinstance(raw, list):
        left = [each for each in (without(item, refused) for item in raw) if each is not None]
        return left if left or not raw else None
    if not isinstance(raw, dict):
        return raw
    if {claimed_name(str(raw.get(name))) for name in ("host", "hostname")} & refused:
        return None
    found = {}
    for name, value in raw.items():
        if name in ("hosts", "hostnames"):
            hosts = [host for host in value if claimed_name(host) not in refused]
            if value and not hosts:
                return None
            found[name] = hosts
        elif (inner := without(value, refused)) is not None:
            found[name] = inner
        else:
            return None
    return found


def check_hosts(seed: int) -> int:
    """Remove the refused hosts of objects that have others; return how many objects there were."""
    every = objects(random.Random(seed))
    options = POOL if seed % 4 == 3 else PRESET
    found, loop = prepare(*surroundings(), *every, options=options)
    loop.settle()
    count = 0
    for raw in every:
        key = key_of(raw)
        item = found.stores[key.kind].get(key)
        if not isinstance(item, CustomObject) or key.kind not in HOST_READERS:
            continue
        names = {*claimed_hosts(item), *hostnames(item)} - {""}
        owners = HostOwners(found.view(), options)
        refused = {name for name in names if owners.refusal_of_unnamed(key.namespace, name)}
        spec = without(raw["spec"], refused) if refused and refused < names else None
        if spec is None or is_parent_of_others(found, key):
            continue
        count += 1
        before = of_others(found, key)
        fill(found, [{**raw, "spec": spec}])
        loop.settle()
        assert of_others(found, key) == before, f"edit of {key} in seed {seed}"
        fill(found, [raw])
        loop.settle()
        assert of_others(found, key) == before, f"edit back of {key} in seed {seed}"
    return count


@pytest.mark.parametrize("seed", range(SETS))
def test_a_refused_host_changes_nothing_of_another_namespace(seed: int) -> None:
    check_hosts(seed)


@pytest.mark.parametrize("seed", range(SETS))
def test_a_refused_object_changes_nothing_of_another_namespace(seed: int) -> None:
    check(seed)
