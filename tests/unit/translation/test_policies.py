"""Policies: what each of them changes, and that everything else passes unchanged."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.assessment import Assessment, ParentState, Verdict
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.namespace_budget import NamespaceBudget
from tests.factories import make_record
from tests.unit.translation.addresses.victims import STRICT, namespace
from tests.unit.translation.objects import OPTIONS, get, make, route, rule, service, world
from translation.core.grants import Destination, Reference
from translation.core.holds import holds_by_name
from translation.core.options import Options
from translation.core.outcome import NOT_SERVED, KeepLast, Outcome, Published, Withdrawn
from translation.policies import (
    POLICIES,
    LastVersion,
    PolicyInputs,
    fold,
    grants_hold,
    hosts_owned,
    secrets_attached,
    within_budget,
)

ROUTE = ObjectKey("ApisixRoute", "default", "route")
MINE = (Hold("routes", prefix="default_route_"),)
BROKEN = (Problem("InvalidSpec", "is wrong"),)
KEPT = KeepLast(MINE, problems=BROKEN)
RESOLVED = Verdict("ResolvedRefs", True, "ResolvedRefs")
HOSTED = make_record("default_route_rule", body={"hosts": ["a.example.com"]})


def inputs(*objects: JsonObject, key: ObjectKey = ROUTE, options: Options = OPTIONS, **fields: Any) -> PolicyInputs:
    raw = route(rule(match={"hosts": ["a.example.com"]}))
    found = world(raw, *objects)
    obj = get(found, "ApisixRoute", "route") if key == ROUTE else None
    return PolicyInputs(key, obj, found.view(), options, **fields)


def last(records: Iterable[Record] = (), **fields: Any) -> LastVersion:
    return LastVersion({record.key: record for record in records}, **fields)


def test_records_above_the_budget_of_a_namespace_are_rejected() -> None:
    claim = UpstreamClaim(ObjectKey("Service", "default", "web"), 80)
    got = within_budget(Published((HOSTED,), (claim,), MINE), inputs(budget=NamespaceBudget(10)))
    assert isinstance(got, KeepLast)
    assert (got.protected, got.claims, got.rejected_bytes) == (MINE, (claim._replace(weak=True),), HOSTED.size)
    (problem,) = got.problems
    assert (problem.code, problem.severity, problem.origin) == (
        "TooLarge",
        "error",
        ObjectKey("Namespace", "", "default"),
    )


def test_regular_expressions_count_as_memory_of_a_gateway_where_plugins_are_reviewed() -> None:
    """With 9,000 different ones, each request took 19 s of a worker."""
    body: JsonObject = {"plugins": {"ua-restriction": {"denylist": [*map(str, range(2100)), "1"]}}}
    outcome = Published((make_record("default_route_rule", body=body),))
    reviewed = replace(OPTIONS, plugins="reviewed")
    assert within_budget(outcome, inputs()) is outcome
    assert isinstance(within_budget(outcome, inputs(options=reviewed)), KeepLast)


def test_a_host_of_ingress_nginx_counts_against_the_budget_of_a_namespace() -> None:
    budget, host = NamespaceBudget(10), ObjectKey("NginxHost", "", "a.example.com")
    budget.assign(host, "default")
    got = within_budget(Published((HOSTED,)), inputs(key=host, budget=budget))
    assert isinstance(got, KeepLast)
    assert [problem.origin for problem in got.problems] == [ObjectKey("Namespace", "", "default")]


@pytest.mark.parametrize("key", [ObjectKey("Service", "default", "web"), ObjectKey("ApisixClusterConfig", "", "web")])
def test_services_and_objects_without_a_namespace_have_no_budget(key: ObjectKey) -> None:
    outcome = Published((HOSTED,))
    assert within_budget(outcome, inputs(key=key, budget=NamespaceBudget(10))) is outcome


def test_a_last_version_that_needs_a_removed_grant_is_withdrawn() -> None:
    reference = Reference("ApisixRoute", "default", ObjectKey("Secret", "other", "s"))
    got = grants_hold(KEPT, inputs(last=last(references=frozenset({reference}))))
    reason = "its last valid records need a grant that was removed"
    assert got == Withdrawn(reason, BROKEN, holds_by_name(ROUTE))


def test_a_last_version_with_an_address_that_is_no_longer_permitted_is_withdrawn() -> None:
    leads_to = last(destinations=frozenset({Destination("ApisixRoute", "default", "web.other.svc")}))
    got = grants_hold(KEPT, inputs(namespace("other"), service(namespace="other"), options=STRICT, last=leads_to))
    assert isinstance(got, Withdrawn)
    assert got.reason == "its last valid records use an address that is no longer permitted"


def test_where_grants_are_needed_only_records_of_the_own_namespace_are_protected() -> None:
    got = grants_hold(KEPT, inputs(options=Options(cross_namespace="grant")))
    assert got == KEPT._replace(protected=(MINE[0]._replace(sources=frozenset({"default/"})),))


def test_a_last_version_with_a_host_of_another_namespace_is_withdrawn() -> None:
    assigned = make("Namespace", "other", annotations={"apisix.apache.org/hosts": "a.example.com"})
    options = Options(host_ownership="namespace")
    got = hosts_owned(KEPT, inputs(assigned, options=options, last=last([HOSTED])))
    assert isinstance(got, Withdrawn)
    assert got.reason == "its last valid records use a host that belongs to another namespace"
    assert got.hosts == frozenset()


def test_only_records_with_owned_hosts_are_protected() -> None:
    got = hosts_owned(KEPT, inputs(options=Options(host_ownership="namespace"), last=last([HOSTED])))
    hosts = frozenset({"a.example.com"})
    assert got == KEPT._replace(protected=(MINE[0]._replace(hosts=hosts),), hosts=hosts)


def test_a_record_without_its_source_stays_while_its_host_is_owned() -> None:
    certificate = make_record("default_tls", kind="ssls", body={"snis": ["a.example.com"]})
    held = (Hold("ssls", names=frozenset({"default_tls"})),)
    outcome = Published((HOSTED,), carried_over={certificate.key: {}}, held=held)
    options = Options(host_ownership="namespace")
    got = hosts_owned(outcome, inputs(options=options, last=last([certificate])))
    hosts = frozenset({"a.example.com"})
    assert got == outcome._replace(held=(held[0]._replace(hosts=hosts),), hosts=hosts)
    assigned = make("Namespace", "other", annotations={"apisix.apache.org/hosts": "a.example.com"})
    lost = hosts_owned(outcome, inputs(assigned, options=options, last=last([certificate])))
    assert lost == outcome._replace(carried_over={}, held=(held[0]._replace(hosts=frozenset()),))


def test_a_published_object_holds_its_hosts() -> None:
    got = hosts_owned(Published((HOSTED,)), inputs(options=Options(host_ownership="namespace")))
    assert got == Published((HOSTED,), hosts=frozenset({"a.example.com"}))


def test_records_know_the_secrets_that_they_were_generated_from() -> None:
    found = world(make("Secret", "s", stringData={"key": "value"}))
    secret = found.view().get(Secret, ObjectKey("Secret", "default", "s"))
    assert secret is not None
    got = secrets_attached(Published((HOSTED,)), inputs(secrets=(secret,)))
    assert isinstance(got, Published)
    assert [record.secrets for record in got.records] == [(secret,)]
    assert got.records == (replace(HOSTED),)


@pytest.mark.parametrize("ownership", ["shared", "namespace"])
@pytest.mark.parametrize("outcome", [NOT_SERVED, Withdrawn("why", BROKEN), KEPT, Published((HOSTED,), (), MINE)])
def test_an_object_without_a_name_for_hosts_passes_unchanged(outcome: Outcome, ownership: Any) -> None:
    key = ObjectKey("ApisixPluginConfig", "default", "config")
    assert fold(outcome, inputs(key=key, options=Options(host_ownership=ownership))) == outcome


def test_a_route_of_the_gateway_api_that_a_policy_rejects_is_not_accepted() -> None:
    parent = ParentState({"name": "gateway"}, (Verdict("Accepted", True, "Accepted"), RESOLVED))
    outcome = Published((HOSTED,), assessment=Assessment(parents=(parent,)))
    got = fold(outcome, inputs(budget=NamespaceBudget(10)))
    rejected = Verdict("Accepted", False, "UnsupportedValue", str(got.problems[0]))
    assert got.assessment == Assessment(parents=(replace(parent, verdicts=(rejected, RESOLVED)),))


def test_a_gateway_that_a_policy_rejects_is_not_programmed() -> None:
    outcome = Published((HOSTED,), assessment=Assessment((Verdict("Programmed", True, "Programmed"),)))
    got = fold(outcome, inputs(budget=NamespaceBudget(10)))
    assert got.assessment == Assessment((Verdict("Programmed", False, "Pending", str(got.problems[0])),))


def test_each_policy_says_why_it_exists() -> None:
    assert [policy.__name__ for policy in POLICIES if not (policy.__doc__ or "").strip()] == []
