"""BackendTrafficPolicy → settings for the upstreams of a Service or of one of its ports, whatever route leads there.

A policy for a port takes precedence over one for the whole Service, and the older one over others for the same. An
ApisixUpstream with the name of the Service takes precedence over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Service, why_first
from apisix_ingress.state.view import View
from crds import SpecError
from crds.v1alpha1.traffic import BackendTrafficPolicySpec
from crds.v2.upstream import UpstreamSettings
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import class_is_ours
from translation.core.text_checks import check_object, check_spec
from translation.gateway.extensions.standings import (
    BACKEND_TRAFFIC_POLICY,
    TOO_MANY,
    Standing,
    assessed_policy,
    named_targets,
    policies_of,
    sections_of,
)
from translation.gateway.parsing import spec_of
from translation.upstreams.settings import settings_body


def port_settings(scope: Context, service: ObjectKey, port: str) -> UpstreamSettings | None:
    """Return the settings that a policy has for a port of a Service, or None. Its mistakes are reported in `scope`.

    Args:
        scope: The context of the Service.
        service: The Service.
        port: The name of the port; a port without a name has only the settings of the whole Service.
    """
    policies = policies_of(BACKEND_TRAFFIC_POLICY, service, scope.view)
    for section in dict.fromkeys((port, "")):
        if policy := next((each for each in policies if section in sections_of(each, service)), None):
            spec = _read(policy, scope)
            return spec.settings() if spec else None
    return None


def _read(policy: CustomObject, scope: Context) -> BackendTrafficPolicySpec | None:
    check_spec(scope, policy.spec)
    try:
        return spec_of(policy, BackendTrafficPolicySpec)
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None


def translate_backend_traffic_policy(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a policy."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    if spec := _read(obj, draft):
        settings_body(draft, spec.settings())
    return assessed_policy(draft, list(_found(obj, view, options)))


def is_policy_of_ours(obj: CustomObject, view: View, _options: Options) -> bool:
    """Return whether a policy applies to a Service."""
    return any(view.get(Service, key) is not None for key in _targets(obj))


def _targets(obj: CustomObject) -> Iterator[ObjectKey]:
    return named_targets(obj, ("Service",))


def _found(obj: CustomObject, view: View, options: Options) -> Iterator[tuple[ObjectKey, ObjectKey, Standing]]:
    for key in _targets(obj):
        service = view.get(Service, key)
        if service is not None:
            yield key, key, _standing(obj, service, view, options)


def _standing(obj: CustomObject, service: Service, view: View, options: Options) -> Standing:
    key = service.meta.key
    upstream = view.get(CustomObject, ObjectKey("ApisixUpstream", key.namespace, key.name))
    if upstream is not None and class_is_ours(upstream, view, options):
        return Standing("Conflicted", f"{upstream.meta.key} has settings for the Service; remove one of them")
    policies = policies_of(BACKEND_TRAFFIC_POLICY, key, view)
    if all(each.meta.key != obj.meta.key for each in policies):
        return TOO_MANY
    ports = {each.name for each in service.ports}
    for section in sections_of(obj, key):
        if section and section not in ports:
            return Standing("TargetNotFound", f"has no port named {section}; correct sectionName")
        winner = next(each for each in policies if section in sections_of(each, key))
        if winner.meta.key != obj.meta.key:
            reason = why_first(winner.meta.age, obj.meta.age)
            message = f"{winner.meta.key}, which {reason}, has settings for the same ports; remove one of them"
            return Standing("Conflicted", message)
    return Standing()
