"""ListenerSet → its status. Its Gateway owns its records."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.assessment import Assessment, Verdict
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.gateways import ListenerSetSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.entry.acceptance import refusal_of
from translation.gateway.entry.gateway import assess_listeners, report_listeners
from translation.gateway.entry.listeners import entry_of
from translation.gateway.entry.owned import our_gateway, parent_of
from translation.gateway.parsing import spec_of


def translate_listener_set(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the assessment of a ListenerSet whose Gateway belongs to this controller."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    try:
        spec_of(obj, ListenerSetSpec)
    except SpecError as error:
        draft.report_invalid_spec(error)
    assessment = _assessment(draft, obj)
    return draft.finish()._replace(assessment=assessment)


def _assessment(draft: Builder, obj: CustomObject) -> Assessment:
    parent = parent_of(obj)
    gateway = our_gateway(parent, draft.view, draft.options) if parent else None
    if gateway is None:
        return _refused("ParentNotAccepted", "its Gateway does not exist, or another controller serves it")
    try:
        entry = entry_of(gateway, draft.view, draft.options, draft.owners)
    except SpecError:
        return _refused("ParentNotAccepted", "its Gateway cannot be read")
    if (refusal := refusal_of(entry.gateway.meta.key, entry.spec, draft.view)) is not None:
        return _refused("ParentNotAccepted", f"{gateway.meta.key} is not accepted: {refusal.message}")
    if obj.meta.key not in {each.meta.key for each in entry.sets}:
        why = f"{gateway.meta.key} does not allow ListenerSets of this namespace"
        draft.degrade("NotAllowedByListeners", "spec.parentRef", f"{why}; set its spec.allowedListeners")
        return _refused("NotAllowed", why)
    own = [each for each in assess_listeners(draft, entry) if each.listener.owner == obj.meta.key]
    report_listeners(draft, own)
    listeners = tuple(each.state() for each in own)
    if not any(each.is_programmed for each in own):
        return replace(_refused("ListenersNotValid", "no listener can serve requests"), listeners=listeners)
    return Assessment((Verdict("Accepted", True, "Accepted"), Verdict("Programmed", True, "Programmed")), listeners)


def _refused(reason: str, message: str) -> Assessment:
    return Assessment(tuple(Verdict(type_, False, reason, message) for type_ in ("Accepted", "Programmed")))
