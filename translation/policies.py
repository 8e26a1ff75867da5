"""Policies: rules that the outcome of every translation has to pass before it is used, whatever the kind.

Each policy is a pure function that returns the outcome unchanged or a stricter one; its docstring says why the rule
exists. `fold` applies them in order: first the policies that reject new records, then the policies that decide what may
stay instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject, KubeObject, Secret
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.namespace_budget import NamespaceBudget
from apisix_ingress.state.view import View
from translation.addresses.destinations import are_open
from translation.core.grants import Destination, Reference, is_granted, within_grants
from translation.core.holds import holds_by_name
from translation.core.options import Options
from translation.core.outcome import NOT_SERVED, KeepLast, Outcome, Published, Withdrawn
from translation.hosts.host_owners import NAMING_KINDS, HostOwners, restricted, rests_on_lost_host
from translation.safety.expressions import patterns_of
from translation.safety.records import safe_records
from translation.targets import InvalidTarget, clusters_of, united

_NO_RECORDS: Mapping[RecordKey, Record] = {}


class LastVersion(NamedTuple):
    """What was published last for an object, and what that depends on."""

    records: Mapping[RecordKey, Record] = _NO_RECORDS
    references: frozenset[Reference] = frozenset()
    destinations: frozenset[Destination] = frozenset()


_NEVER_PUBLISHED = LastVersion()
_UNUSED = NamespaceBudget()
"""The budget where nothing else is published."""


class PolicyInputs(NamedTuple):
    """What policies compare an outcome with.

    Attributes:
        key: The owner of the records.
        obj: The object; None if it is gone, or if the owner is not an object.
        view: The objects to read.
        options: The settings.
        secrets: The Secrets that the translation read.
        budget: The bytes of records of each namespace.
        last: The version that stays if the new one is rejected.
    """

    key: ObjectKey
    obj: KubeObject | None
    view: View
    options: Options
    secrets: tuple[Secret, ...] = ()
    budget: NamespaceBudget = _UNUSED
    last: LastVersion = _NEVER_PUBLISHED


Policy: TypeAlias = Callable[[Outcome, PolicyInputs], Outcome]


_BYTES_OF_PATTERN = 64 * 2**10
"""What a regular expression counts against the budget: 2 ms to compile it, and one of 8,192 places in a cache."""


def budgeted_bytes(key: ObjectKey, outcome: Outcome, options: Options) -> int:
    """Return the bytes that count against the budget of a namespace.

    Records of Services are excluded: nodes have a separate limit, and a dead Pod must leave the gateways however large
    its namespace is.
    """
    if not isinstance(outcome, Published) or key.kind == "Service":
        return 0
    patterns: set[str] = set()
    if options.plugins == "reviewed":
        patterns.update(*(patterns_of(record.body) for record in outcome.records))
    return sum(record.size for record in outcome.records) + _BYTES_OF_PATTERN * len(patterns)


def _weight(options: Options) -> str:
    return f", which count {_BYTES_OF_PATTERN // 2**10} KiB each" if options.plugins == "reviewed" else ""


def within_budget(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """One namespace must not fill the memory of gateways, or the cache that they share for regular expressions."""
    size = budgeted_bytes(inputs.key, outcome, inputs.options)
    if not isinstance(outcome, Published) or inputs.budget.fits(inputs.key, size):
        return outcome
    message = (
        f"the objects of this namespace would exceed the limit of {inputs.budget.most // 2**20} MiB of records: delete"
        f" some of them, make them refer to smaller Secrets, or use fewer regular expressions{_weight(inputs.options)}"
    )
    origin = ObjectKey("Namespace", "", inputs.budget.payer(inputs.key))
    return outcome.rejected(Problem("TooLarge", message, "spec", origin=origin), size)


def grants_hold(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """An object must not keep what it may no longer use by becoming invalid: its last version needs its grants, too."""
    if not isinstance(outcome, KeepLast):
        return outcome
    view, options, last = inputs.view, inputs.options, inputs.last
    if not all(is_granted(each, view) for each in last.references):
        return _withdrawn(outcome, inputs, "its last valid records need a grant that was removed")
    if not are_open(last.destinations, view, options):
        return _withdrawn(outcome, inputs, "its last valid records use an address that is no longer permitted")
    if options.cross_namespace != "grant" or not isinstance(inputs.obj, CustomObject):
        return outcome
    return outcome._replace(protected=within_grants(outcome.protected, inputs.obj, view))


def hosts_owned(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """A host belongs to one namespace: a last version must not keep a host that another namespace owns by now."""
    ownership = inputs.options.host_ownership
    if ownership == "shared" or outcome is NOT_SERVED:
        return outcome
    owners = HostOwners(inputs.view, inputs.options)
    if isinstance(outcome, KeepLast) and rests_on_lost_host(inputs.last.records.values(), inputs.key.namespace, owners):
        reason = "its last valid records use a host that belongs to another namespace"
        outcome = _withdrawn(outcome, inputs, reason)
    if inputs.key.kind not in NAMING_KINDS or not isinstance(inputs.obj, CustomObject):
        return outcome
    if isinstance(outcome, KeepLast):
        outcome = outcome._replace(protected=restricted(outcome.protected, inputs.obj, owners))
    elif isinstance(outcome, Published) and outcome.held:
        outcome = _without_lost_hosts(outcome, inputs, inputs.obj, owners)
    return outcome._replace(hosts=owners.owned(inputs.obj)) if ownership == "namespace" else outcome


def _without_lost_hosts(outcome: Published, inputs: PolicyInputs, obj: CustomObject, owners: HostOwners) -> Published:
    """Return the outcome without the last versions of records for hosts that the namespace may not use now."""
    last = inputs.last.records
    stay = {
        key: fields
        for key, fields in outcome.carried_over.items()
        if key in last and not rests_on_lost_host((last[key],), inputs.key.namespace, owners)
    }
    return outcome._replace(carried_over=stay, held=restricted(outcome.held, obj, owners))


def secrets_attached(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """No output may show a value of a Secret: a record says which Secrets it was generated from, to mask them."""
    if not isinstance(outcome, Published) or not inputs.secrets:
        return outcome
    return outcome._replace(records=tuple(record.generated_from(inputs.secrets) for record in outcome.records))


def records_safe(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """No client may choose what a gateway connects to, and no record may stop it, whichever translation wrote it."""
    if not isinstance(outcome, Published):
        return outcome
    records, problems = safe_records(outcome.records, inputs.options)
    return outcome._replace(records=records, problems=(*outcome.problems, *problems)) if problems else outcome


def at_targets(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """An object belongs to the gateways of its class or Gateway: other gateways must not get its records."""
    if not isinstance(outcome, Published) or not inputs.options.gateway_proxies:
        return outcome
    if inputs.key.kind in ("Service", "ApisixUpstream"):
        claimed = frozenset(claim.clusters for _, claim in inputs.view.claims_on(inputs.key))
        return _at(outcome, united(claimed, inputs.options)) if claimed else outcome
    try:
        return _at(outcome, clusters_of(inputs.obj, outcome, inputs.view, inputs.options))
    except InvalidTarget as error:
        if any(problem.code == "InvalidParameters" for problem in outcome.problems):
            return outcome  # a Gateway reports it itself
        return outcome.rejected(Problem("InvalidParameters", str(error)))


def _at(outcome: Published, clusters: frozenset[str] | None) -> Published:
    if clusters is None:
        return outcome
    records = (replace(each, clusters=clusters) if each.clusters is None else each for each in outcome.records)
    claims = (claim._replace(clusters=clusters) for claim in outcome.claims)
    return outcome._replace(records=tuple(records), claims=tuple(claims))


POLICIES: tuple[Policy, ...] = (within_budget, at_targets, grants_hold, hosts_owned, secrets_attached, records_safe)


def fold(outcome: Outcome, inputs: PolicyInputs) -> Outcome:
    """Return the outcome after every policy; the status of a Gateway API object shows the first problem they add."""
    known = len(outcome.problems)
    for policy in POLICIES:
        outcome = policy(outcome, inputs)
    if outcome.assessment is not None and len(outcome.problems) > known:
        return outcome._replace(assessment=outcome.assessment.rejected(str(outcome.problems[known])))
    return outcome


def _withdrawn(outcome: KeepLast, inputs: PolicyInputs, reason: str) -> Withdrawn:
    return outcome.withdrawn(reason, outcome.deletable or holds_by_name(inputs.key))
