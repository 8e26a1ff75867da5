"""BackendTLSPolicy → the verification of backends, and the status for each Gateway whose routes use its Services.

APISIX verifies the certificates of backends from version 3.19 on. While a policy is not accepted, requests to the ports
of its Services are rejected (`routes.backends`), because they must not be sent without the verification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from apisix_ingress.model.assessment import Assessment, ParentState, Verdict
from apisix_ingress.model.json import JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import BY_BACKEND, BY_TARGET
from apisix_ingress.model.objects import CustomObject, ServicePort
from apisix_ingress.state.view import View, oldest
from crds import SpecError
from crds.gateway.common import GATEWAY_GROUP, LocalReference, ObjectReference
from crds.gateway.policies import BackendTlsPolicySpec, BackendValidation
from translation.core.builder import Builder
from translation.core.grants import Reference, is_granted
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.capabilities import VERIFICATION, can
from translation.gateway.entry.certificates import Unresolved, ca_of
from translation.gateway.entry.owned import gateways_of
from translation.gateway.parsing import spec_of

KIND = "BackendTLSPolicy"

MOST_ANCESTORS = 16
"""Limit of the CRD."""

MOST_ROUTES = 64
"""Routes of each kind and Service whose Gateways are looked up: their number per Gateway is not limited."""

_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute")


def translate_backend_tls_policy(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a BackendTLSPolicy: one entry for each Gateway of ours that it concerns."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    ancestors = list(islice(ancestors_of(obj, view, options), MOST_ANCESTORS))
    try:
        spec_of(obj, BackendTlsPolicySpec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    found = verification_of(draft, obj)
    assert found is not None, "the spec was read"
    if ancestors and not found.accepted.holds:
        draft.degrade("UnsupportedPolicy", "spec.validation", found.accepted.message)
    states = tuple(ParentState(_reference(each), (found.accepted, found.resolved)) for each in ancestors)
    return draft.finish()._replace(assessment=Assessment(parents=states))


def policy_of(view: View, service: ObjectKey, port: ServicePort) -> CustomObject | None:
    """Return the BackendTLSPolicy of a port: one for the port takes precedence, then the older one."""
    index = IndexKey(KIND, BY_TARGET, f"{service.namespace}/{service.name}")
    found = [(section, each) for each in view.find(CustomObject, index) for section in _sections(each, service.name)]
    of_port = [each for section, each in found if section == port.name and section]
    of_service = [each for section, each in found if not section]
    return min(of_port or of_service, key=lambda each: each.meta.age, default=None)


def _sections(policy: CustomObject, service: str) -> set[str]:
    """Return the ports of a Service that a policy names; the empty string means every port."""
    targets = (mapping_in(target) for target in list_in(policy.spec.get("targetRefs")))
    return {str(target.get("sectionName") or "") for target in targets if target.get("name") == service}


def ancestors_of(obj: CustomObject, view: View, options: Options) -> Iterator[ObjectKey]:
    """Yield the Gateways of ours with a route to one of the Services, each once."""
    names = dict.fromkeys(each.get("name") for each in map(mapping_in, list_in(obj.spec.get("targetRefs"))))
    services = [ObjectKey("Service", obj.meta.namespace, str(name)) for name in names]
    routes = chain.from_iterable(
        islice(_routes_to(service, kind, view), MOST_ROUTES) for service in services for kind in _ROUTES
    )
    seen: dict[ObjectKey, None] = {}
    for route in routes:
        for gateway in gateways_of(route, view, options):
            if gateway not in seen:
                seen[gateway] = None
                yield gateway


def _routes_to(service: ObjectKey, kind: str, view: View) -> Iterator[CustomObject]:
    """Yield the routes of a kind that name a Service as a backend and may use it, the oldest first."""
    for route in oldest(view, CustomObject, IndexKey(kind, BY_BACKEND, f"{service.namespace}/{service.name}")):
        if route.meta.namespace == service.namespace or is_granted(
            Reference(kind, route.meta.namespace, service), view
        ):
            yield route


@dataclass(frozen=True, slots=True)
class Verification:
    """How gateways verify the backends of a policy.

    Attributes:
        accepted: The condition Accepted of the policy.
        resolved: The condition ResolvedRefs.
        fields: Fields of the upstreams; None if the policy is not accepted: requests must not be sent.
    """

    accepted: Verdict
    resolved: Verdict
    fields: JsonObject | None = None


def verification_of(draft: Builder, obj: CustomObject) -> Verification | None:
    """Return how gateways verify the backends of a policy; None if it cannot be read."""
    try:
        spec = spec_of(obj, BackendTlsPolicySpec)
    except SpecError:
        return None
    found = [_ca(draft, obj.meta.key, each) for each in spec.validation.ca_certificate_refs]
    wrong = next((each for each in found if isinstance(each, Unresolved)), None)
    cas = [each for each in found if isinstance(each, str)]
    resolved = Verdict("ResolvedRefs", True, "ResolvedRefs")
    if wrong is not None:
        resolved = Verdict("ResolvedRefs", False, wrong.reason, wrong.message)
    if winner := _winner(obj, spec, draft.view):
        message = f"{winner.meta.key} applies to the same Service and is older; remove one of them"
        return Verification(Verdict("Accepted", False, "Conflicted", message), resolved)
    if wrong is not None and not cas:
        return Verification(Verdict("Accepted", False, "NoValidCACertificate", wrong.message), resolved)
    if message := _unsupported(spec.validation, draft.view):
        return Verification(Verdict("Accepted", False, "Invalid", message), resolved)
    tls: JsonObject = {"verify": True, **({"ca_certs": cas} if cas else {})}
    fields: JsonObject = {"pass_host": "rewrite", "upstream_host": spec.validation.hostname, "tls": tls}
    return Verification(Verdict("Accepted", True, "Accepted"), resolved, fields)


def _unsupported(validation: BackendValidation, view: View) -> str:
    """Return which part of a policy gateways do not support, or an empty text."""
    if not can(view, VERIFICATION):
        return (
            "verification of backends needs APISIX 3.19 or later on all gateways, so requests to the Service get "
            "a 500 response; upgrade, or remove the policy to send requests without verification"
        )
    if validation.subject_alt_names:
        return "subjectAltNames are not supported; remove them"
    if validation.well_known_ca_certificates not in ("", "System"):
        return f"wellKnownCACertificates {validation.well_known_ca_certificates} is not supported; use System"
    return ""


def _ca(draft: Builder, owner: ObjectKey, reference: LocalReference) -> str | Unresolved:
    found = ObjectReference(group=reference.group, kind=reference.kind, name=reference.name)
    return ca_of(draft, owner, found, ("InvalidKind", "InvalidCACertificateRef"))


def _winner(obj: CustomObject, spec: BackendTlsPolicySpec, view: View) -> CustomObject | None:
    """Return an older policy for the same Service and port name, or None."""
    for target in spec.target_refs:
        index = IndexKey(KIND, BY_TARGET, f"{obj.meta.namespace}/{target.name}")
        rivals = (each for each in view.find(CustomObject, index) if each.meta.age < obj.meta.age)
        found = next((each for each in rivals if target.section_name in _sections(each, target.name)), None)
        if found is not None:
            return found
    return None


def _reference(gateway: ObjectKey) -> dict[str, str]:
    return {"group": GATEWAY_GROUP, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name}
