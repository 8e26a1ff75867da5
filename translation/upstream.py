"""ApisixUpstream → the upstream record of one with external nodes or discovery.

One that configures a Service has no record of its own: it is checked here, so that its own condition reports mistakes,
and used by `service`.
"""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.upstream import ApisixUpstreamSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome
from translation.core.text_checks import check_object
from translation.upstreams.external import external_body, is_external
from translation.upstreams.settings import for_ports, settings_body


def translate_upstream(obj: CustomObject | None, view: View, options: Options) -> Outcome:
    """Return the upstream of an ApisixUpstream if a route claims it, and its mistakes in any case."""
    if obj is None:
        return NOTHING
    draft = Builder(obj.meta, view, options)
    name = names.object_name(obj.meta.namespace, obj.meta.name)
    draft.protect("upstreams", names=frozenset({name}))
    check_object(draft, obj)
    try:
        spec = parse_spec(ApisixUpstreamSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    if is_external(spec):
        _external(draft, spec, name)
    else:
        _decorator(draft, spec)
    return draft.finish()


def _decorator(draft: Builder, spec: ApisixUpstreamSpec) -> None:
    """Check the settings of a Service. If the Service is missing, the settings have no effect."""
    settings_body(draft, spec)
    for settings, paths in for_ports(spec):
        settings_body(draft, settings, paths)
    key = ObjectKey("Service", draft.namespace, draft.meta.name)
    if draft.view.get(Service, key) is None:
        message = (
            f"{key} does not exist, so these settings have no effect; create it or correct the name of this object"
        )
        draft.degrade("ServiceNotFound", "metadata.name", message)


def _external(draft: Builder, spec: ApisixUpstreamSpec, name: str) -> None:
    body = external_body(draft, spec)
    claims = draft.view.claims_on(draft.meta.key)
    if claims:
        weak = all(claim.weak for _, claim in claims)
        start = draft.new_body("upstreams", name, labelled=True)
        body["labels"] = start["labels"] | body.get("labels", {})
        draft.record("upstreams", name, start | body, existing_only=weak)
