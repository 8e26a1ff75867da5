"""HTTPRoute and GRPCRoute → a route record for each match at each listener, and the status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apisix_ingress.model import names
from apisix_ingress.model.assessment import Assessment, ListenerKey, ParentState, Verdict
from apisix_ingress.model.json import canonical
from apisix_ingress.model.network.gateway_matches import RankedMatch, ranked_matches
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.common import BackendReference, Filter, Timeouts
from crds.gateway.routes import GrpcRouteSpec, HttpRouteSpec, PathMatch, RouteSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome, Published
from translation.core.text_checks import check_object
from translation.gateway.entry.listeners import Listener
from translation.gateway.entry.matching import abort, address_and_port, handshake
from translation.gateway.extensions.http_route_policy import rule_effects
from translation.gateway.names import record_prefix, route_name
from translation.gateway.parsing import spec_of
from translation.gateway.routes.attachment import Attached, Parent, parents_of
from translation.gateway.routes.backends import Backends, Invalid, Wanted, backend_fields, backends_of, resolved
from translation.gateway.routes.experimental import PLAIN, Branch, branches_of, retries_of
from translation.gateway.routes.extensions import extend
from translation.gateway.routes.external_auth import auth_plugins, refusal_of
from translation.gateway.routes.filters import Setting, steps_of
from translation.gateway.routes.matches import grpc_fields, http_fields
from translation.gateway.routes.mirrors import mirror_plugin
from translation.gateway.routes.mirrors import refusal_of as refusal_of_mirrors
from translation.gateway.routes.precedence import KINDS as ORDERED_KINDS
from translation.gateway.routes.precedence import by_priority
from translation.hosts.host_owners import NOT_OWNED
from translation.hosts.route_conflicts import RouteConflicts
from translation.plugins.pattern_errors import close_on_error

_PRIORITY_STEP = 2**24
"""A priority of a policy outweighs the precedence of any match."""

MOST_RECORDS = 10_000
"""Maximum number of records of a route where teams share gateways: 64 listeners times 128 matches are fewer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One match of a rule: its conditions, and the path for prefix replacements."""

    fields: dict[str, Any]
    path: PathMatch


@dataclass(frozen=True, slots=True)
class Rule:
    """What HTTPRoutes and GRPCRoutes have in common."""

    cases: tuple[Case, ...]
    filters: tuple[Filter, ...]
    references: tuple[BackendReference, ...]
    timeout: float = 0.0
    scheme: str = ""
    retries: int | None = None
    branches: tuple[Branch, ...] = PLAIN
    refusals: tuple[tuple[str, str], ...] = ()


def translate_http_route(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the records of an HTTPRoute or GRPCRoute with a Gateway of this controller."""
    draft = Builder(obj.meta, view, options)
    draft.protect("routes", prefix=record_prefix(obj.meta.key))
    check_object(draft, obj)
    try:
        spec, rules = _read(obj, options)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    parents = parents_of(draft, obj, spec)
    attached = {each.listener.key: each for parent in parents for each in parent.listeners}
    served = [each for each in attached.values() if each.is_served]
    if options.judges_plugins and len(served) * sum(1 for _ in ranked_matches(obj)) > MOST_RECORDS:
        what = f"generates more than {MOST_RECORDS:,} routes, one for each match and listener; use fewer of them"
        draft.error("TooLarge", "spec", what)
        served = []
    route = _Route(draft, obj, served)
    for index, rule in enumerate(rules):
        route.add(rule, index)
    return assessed(draft, parents, tuple(route.invalid))


def _read(obj: CustomObject, options: Options) -> tuple[RouteSpec, Iterator[Rule]]:
    if obj.meta.kind == "GRPCRoute":
        grpc = spec_of(obj, GrpcRouteSpec)
        return grpc, _grpc_rules(grpc, options)
    http = spec_of(obj, HttpRouteSpec)
    return http, _http_rules(http, options)


def assessed(draft: Builder, parents: Sequence[Parent], invalid: Sequence[Invalid]) -> Outcome:
    """Return the translation of a route with its status for each parent."""
    for each in invalid:
        draft.degrade(each.reason, each.path, each.message)
    for why in dict.fromkeys(why for parent in parents for each in parent.listeners for why in each.lost):
        draft.degrade(NOT_OWNED, "spec.hostnames", why)
    for parent in parents:
        if not parent.accepted.holds:
            draft.degrade(parent.accepted.reason, "spec.parentRefs", parent.accepted.message)
    outcome = draft.finish()
    wrong = next((each for each in outcome.problems if each.severity == "error"), None)
    refusal = Verdict("Accepted", False, _reason(wrong.code), str(wrong)) if wrong else None
    verdicts = [resolved(invalid), *_conflict(outcome)]
    states = (
        ParentState(each.reference, (each.accepted if refusal is None else refusal, *verdicts)) for each in parents
    )
    keys = frozenset[ListenerKey]().union(*(each.keys for each in parents)) if refusal is None else frozenset()
    if isinstance(outcome, Published) and not keys:
        outcome = outcome._replace(claims=())  # a Service needs no upstream for a route without requests
    return outcome._replace(assessment=Assessment(parents=tuple(states)), attached=keys)


def _conflict(outcome: Outcome) -> Iterator[Verdict]:
    """Yield the condition of a route if an older Ingress or ApisixRoute gets some of its requests."""
    lost = next((each for each in outcome.problems if each.code == "Conflicted"), None)
    if lost is not None:
        yield Verdict("Conflicted", True, "OlderRoute", str(lost))


_REASONS = frozenset({"UnsupportedValue", "IncompatibleFilters"})


def _reason(code: str) -> str:
    """Return the reason in the specification for a route that is not accepted."""
    return code if code in _REASONS else "UnsupportedValue"


@dataclass(frozen=True, slots=True)
class _Part:
    """What the records of one match have in common, at all listeners.

    Attributes:
        rule: The rule of the match.
        branch: Which of the records of the match.
        backends: The backends of the rule.
        case: The match.
        behind: How many older Ingresses and ApisixRoutes take the same requests; its priority is below theirs.
    """

    rule: Rule
    branch: Branch
    backends: Backends
    case: Case
    behind: int = 0


class _Route:
    """The records of one route, added rule by rule."""

    def __init__(self, draft: Builder, obj: CustomObject, attached: Sequence[Attached]) -> None:
        self.invalid: dict[Invalid, None] = {}
        self._draft = draft
        self._obj = obj
        self._attached = attached
        self._effects = rule_effects(draft, obj)
        self._rivals = RouteConflicts(draft, obj, ORDERED_KINDS)
        self._matches: dict[int, list[tuple[RankedMatch, int]]] = {}
        equal: Counter[tuple[str, int]] = Counter()
        for match in ranked_matches(obj):
            # The number of equal matches that precede it in the route.
            position = equal[match.literal, match.rank]
            equal[match.literal, match.rank] += 1
            self._matches.setdefault(match.rule, []).append((match, position))

    def add(self, rule: Rule, index: int) -> None:
        """Add the records of a rule."""
        path = f"spec.rules[{index}]"
        retries = 0 if rule.retries is None and rule.timeout > 0 else rule.retries
        ahead = [self._rivals.ahead(f"{path}.matches[{match.match}]") for match, _ in self._matches[index]]
        for branch in rule.branches:
            wanted = Wanted(rule.scheme, retries, branch.balancer)
            backends = backends_of(self._draft, rule.references, f"{path}.backendRefs", wanted)
            self.invalid |= dict.fromkeys(backends.invalid)
            for reason, message in (*rule.refusals, backends.refusal):
                if reason:
                    self._draft.error(reason, path, message)
            for attached in self._attached:
                for (match, position), case, behind in zip(self._matches[index], rule.cases, ahead, strict=True):
                    self._match(_Part(rule, branch, backends, case, behind), attached, match, position)

    def _match(self, part: _Part, attached: Attached, match: RankedMatch, position: int) -> None:
        """Add the records of one match at one listener: one, unless hosts need different priorities.

        A small route with many matches and listeners would have very many, so this ends at the limit.
        """
        draft, listener = self._draft, attached.listener
        if draft.is_full:
            return
        where = [
            *address_and_port(listener, attached.address, draft.options),
            *handshake(attached.entry, listener),
        ]
        owners = attached.entry.hosts
        hosts = by_priority(self._obj, match, position, attached.hosts, listener, owners=owners, view=draft.view)
        requests = names.wide_id(canonical(part.case.fields).decode())
        base = route_name(self._obj.meta.key, requests, position, listener.key)
        for number, (priority, names_) in enumerate(hosts.items()):
            name = (f"{base}_{number}" if number else base) + part.branch.suffix
            body = draft.new_body("routes", name)
            if hosts_ := [each for each in names_ if each]:
                body["hosts"] = hosts_
            effect = self._effects[match.rule]
            if part.behind:
                priority = -part.behind
            else:
                priority += (effect.priority or 0) * _PRIORITY_STEP
            fields = part.case.fields
            own = map(list, part.branch.vars)
            body |= {**fields, "priority": priority, "vars": [*where, *fields["vars"], *own, *effect.vars]}
            body |= self._action(part, listener, name=name, hosts=hosts_, index=match.rule)
            draft.record("routes", name, body)
            close_on_error(draft, name, body)

    def _action(self, part: _Part, listener: Listener, *, name: str, hosts: list[str], index: int) -> dict[str, Any]:
        """Return the plugins and the upstream of a record."""
        path, rule = f"spec.rules[{index}].filters", part.rule
        steps = steps_of(rule.filters, Setting(part.case.path, listener))
        if part.branch.header is not None:
            steps.add_to_answers(*part.branch.header)
        if steps.refusal[0]:
            self._draft.error(steps.refusal[0], path, steps.refusal[1])
        body: dict[str, Any] = {"plugins": steps.plugins}
        if not steps.redirects and (rule.references or not steps.extensions):
            body |= backend_fields(part.backends, steps.plugins)
        of_hosts = {"hosts": hosts} if hosts else {}
        if steps.mirrors:
            plugin, invalid = mirror_plugin(self._draft, steps.mirrors, name, of_hosts, path)
            steps.plugins |= plugin
            self.invalid |= dict.fromkeys(invalid)
        if rule.timeout:
            body["timeout"] = {"connect": rule.timeout, "send": rule.timeout, "read": rule.timeout}
        if not steps.plugins and "upstream_id" in body:
            del body["plugins"]  # a gateway requires one of the two
        self.invalid |= dict.fromkeys(extend(self._draft, body, steps.extensions, path))
        if steps.auth is not None:
            self._guard(body, auth_plugins(self._draft, steps.auth, name, of_hosts, path))
        return body

    def _guard(self, body: dict[str, Any], found: dict[str, Any] | Invalid) -> None:
        """Add the plugins that ask a service; without the service, requests get 500."""
        if isinstance(found, Invalid):
            self.invalid[found] = None
            body.pop("upstream_id", None)
            body.pop("plugin_config_id", None)
            body["plugins"] = abort(500)["plugins"]
        else:
            body["plugins"] = {**body.get("plugins", {}), **found}


def _http_rules(spec: HttpRouteSpec, options: Options) -> Iterator[Rule]:
    on = options.gateway_experimental
    for rule in spec.rules:
        cases = tuple(Case(http_fields(each), each.path) for each in rule.matches) or (_EVERYTHING,)
        retries, refusal = retries_of(rule.retry, rule.timeouts, enabled=on)
        branches, other = branches_of(rule.session_persistence, backends=len(rule.backend_refs), enabled=on)
        yield Rule(
            cases,
            rule.filters,
            rule.backend_refs,
            _limit(rule.timeouts),
            retries=retries,
            branches=branches,
            refusals=(refusal, other, refusal_of(rule.filters, enabled=on)),
        )


def _grpc_rules(spec: GrpcRouteSpec, options: Options) -> Iterator[Rule]:
    on = options.gateway_experimental
    for rule in spec.rules:
        cases = tuple(Case(grpc_fields(each), PathMatch()) for each in rule.matches) or (_EVERYTHING,)
        branches, refusal = branches_of(rule.session_persistence, backends=len(rule.backend_refs), enabled=on)
        refusals = (refusal, refusal_of_mirrors(rule.filters))
        yield Rule(cases, rule.filters, rule.backend_refs, scheme="grpc", branches=branches, refusals=refusals)


_EVERYTHING = Case({"uris": ["/*"], "vars": []}, PathMatch())


def _limit(timeouts: Timeouts) -> float:
    """Return the timeout of a backend in seconds; 0 means unlimited."""
    return min((each for each in (timeouts.backend_request, timeouts.request) if each), default=0.0)
