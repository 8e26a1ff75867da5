"""Gateway → ssl records of its listeners, the records that isolate listeners, and its status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from apisix_ingress.model.assessment import Assessment, ListenerState, Verdict, changed
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.entry.acceptance import REFUSALS, refusal_of
from translation.gateway.entry.addresses import Assigned, address_of
from translation.gateway.entry.certificates import (
    Unresolved,
    listener_pairs,
    merged_pairs,
    pair_of,
)
from translation.gateway.entry.client_verification import verification_of
from translation.gateway.entry.listeners import Entry, Listener, entry_of
from translation.gateway.entry.matching import closed, guards
from translation.gateway.extensions.gateway_proxy import proxy_of
from translation.gateway.names import listener_name, record_prefix
from translation.hosts.certificates import KeyPair


@dataclass(slots=True)
class ListenerOutcome:
    """The assessment of a listener.

    Attributes:
        listener: The listener.
        pairs: Its certificates.
        client: The client-auth settings of its ssl record.
        refusal: Reason and message why it is not accepted, or empty texts.
        unresolved: The first reference that cannot be resolved.
    """

    listener: Listener
    pairs: list[KeyPair] = field(default_factory=list)
    client: dict[str, object] = field(default_factory=dict)
    refusal: tuple[str, str] = ("", "")
    unresolved: Unresolved | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether routes may attach."""
        return not self.refusal[0]

    @property
    def is_programmed(self) -> bool:
        """Whether it can serve requests."""
        return self.is_accepted and self.unresolved is None

    def state(self) -> ListenerState:
        """Return the entry of `status.listeners`."""
        item, (reason, why) = self.listener, self.refusal
        conflict = item.conflict
        wrong = self.unresolved
        verdicts = (
            Verdict("Accepted", not reason, reason or "Accepted", why),
            Verdict("Conflicted", bool(conflict), conflict or "NoConflicts", why if conflict else ""),
            Verdict("ResolvedRefs", wrong is None, wrong.reason if wrong else "ResolvedRefs", _message_of(wrong)),
            Verdict("Programmed", self.is_programmed, self._programmed(), why or _message_of(wrong)),
        )
        return ListenerState(item.name, item.port, item.kinds, verdicts)

    def _programmed(self) -> str:
        if self.is_programmed:
            return "Programmed"
        return self.listener.conflict or "Invalid"


def translate_gateway(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the records of a Gateway of ours, including those of the listeners of its ListenerSets."""
    draft = Builder(obj.meta, view, options)
    for kind in ("ssls", "routes"):
        draft.protect(kind, prefix=record_prefix(obj.meta.key))
    check_object(draft, obj)
    try:
        entry = entry_of(obj, view, options, draft.owners)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    address = address_of(obj, entry.spec, view, options)
    outcomes = assess_listeners(draft, entry)
    report_listeners(draft, outcomes)
    if unsupported := refusal_of(obj.meta.key, entry.spec, view):
        draft.degrade(*REFUSALS[unsupported.reason], unsupported.message.removeprefix("parametersRef: "))
    backend = _backend_certificate(draft, entry)
    refusal = _refusal(entry, outcomes, view)
    if (refusal is None or refusal.holds) and (address.value or not options.gateway_addresses):
        for each in outcomes:
            _records(draft, entry, each, address)
    assessment = _assessment(entry, outcomes, address=address, refusal=refusal, backend=backend, options=options)
    if assessment.addresses is None:
        assessment = replace(assessment, addresses=proxy_of(obj.meta.key, entry.spec, view).addresses or None)
    return draft.finish()._replace(assessment=assessment)


def report_listeners(draft: Builder, outcomes: Iterable[ListenerOutcome]) -> None:
    """Report the problems of the listeners that the object itself defines."""
    own = [each for each in outcomes if each.listener.owner == draft.meta.key]
    for index, each in enumerate(own):
        wrong = each.unresolved
        reason, message = each.refusal if each.refusal[0] else (wrong.reason, wrong.message) if wrong else ("", "")
        if reason:
            draft.degrade("ListenerNotReady", f"spec.listeners[{index}]", f"{each.listener.name}: {reason}: {message}")


def assess_listeners(draft: Builder, entry: Entry) -> list[ListenerOutcome]:
    """Return the assessment of each listener of a Gateway, including those of ListenerSets."""
    return [_outcome(draft, entry, each) for each in entry.listeners]


def _outcome(draft: Builder, entry: Entry, listener: Listener) -> ListenerOutcome:
    found = ListenerOutcome(listener, refusal=entry.refusal(listener))
    if listener.has_other_kinds:
        found.unresolved = Unresolved("InvalidRouteKinds", "allowedRoutes.kinds has kinds unsupported by the protocol")
    if found.is_accepted and listener.protocol in ("HTTPS", "TLS") and not listener.is_passthrough:
        found.pairs, wrong = listener_pairs(draft, listener)
        found.unresolved = wrong or found.unresolved
        clients = verification_of(entry, listener, draft.view, draft.options)
        found.client = clients.client
        found.unresolved = clients.unresolved or found.unresolved
        if clients.refusal[0]:
            found.refusal = clients.refusal
    return found


def _records(draft: Builder, entry: Entry, found: ListenerOutcome, address: Assigned) -> None:
    name = listener_name(found.listener.key)
    if not found.is_programmed:
        if address.value and not entry.refusal(found.listener)[0] and found.listener.protocol == "HTTPS":
            full = f"{name}_closed"
            record = closed(found.listener, address.value, draft.options)
            draft.record("routes", full, draft.new_body("routes", full) | record)
        return
    if found.pairs:
        snis = {"snis": [found.listener.hostname]} if found.listener.hostname else {"sni": "*"}
        body = draft.new_body("ssls", name)
        del body["name"], body["desc"]  # the gateway's schema has neither
        draft.record("ssls", name, body | snis | merged_pairs(found.pairs) | found.client | {"status": 1})
    if found.listener.protocol in ("HTTP", "HTTPS"):
        for word, guard in guards(entry, found.listener, address.value, draft.options):
            full = f"{name}_{word}"
            draft.record("routes", full, draft.new_body("routes", full) | guard)


def _backend_certificate(draft: Builder, entry: Entry) -> Unresolved | None:
    reference = entry.spec.tls.backend.client_certificate_ref
    if reference is None:
        return None
    found = pair_of(draft, entry.gateway.meta.key, reference, "InvalidClientCertificateRef")
    return found if isinstance(found, Unresolved) else None


def _refusal(entry: Entry, outcomes: Iterable[ListenerOutcome], view: View) -> Verdict | None:
    """Return the condition Accepted of a Gateway with problems; it is True if some listener is accepted."""
    if (refusal := refusal_of(entry.gateway.meta.key, entry.spec, view)) is not None:
        return refusal
    own = [each for each in outcomes if each.listener.owner == entry.gateway.meta.key]
    wrong = [each.listener.name for each in own if not each.is_accepted]
    if wrong:
        names = ", ".join(wrong)
        return Verdict("Accepted", len(wrong) < len(own), "ListenersNotValid", f"listeners not accepted: {names}")
    return None


def _assessment(
    entry: Entry,
    outcomes: Iterable[ListenerOutcome],
    *,
    address: Assigned,
    refusal: Verdict | None,
    backend: Unresolved | None,
    options: Options,
) -> Assessment:
    own = [each for each in outcomes if each.listener.owner == entry.gateway.meta.key]
    is_served = (refusal is None or refusal.holds) and bool(address.value or not options.gateway_addresses)
    accepted = refusal or Verdict("Accepted", True, "Accepted")
    programmed = Verdict("Programmed", True, "Programmed")
    if not accepted.holds or not any(each.is_programmed for each in outcomes):
        programmed = Verdict("Programmed", False, "Invalid", accepted.message or "no listener can serve requests")
    elif options.gateway_addresses and not address.value:
        text = "gateway_api.address_pool has no address left; add addresses to it"
        programmed = Verdict("Programmed", False, "AddressNotAssigned", text)
    elif address.unusable:
        programmed = Verdict("Programmed", False, "AddressNotUsable", address.unusable)
    verdicts = [accepted, programmed]
    if entry.spec.tls.backend.client_certificate_ref is not None:
        reason = backend.reason if backend else "ResolvedRefs"
        verdicts.append(Verdict("ResolvedRefs", backend is None, reason, _message_of(backend)))
    if _trusts_anybody(entry):
        text = "tls.frontend admits clients whose certificate cannot be verified"
        verdicts.append(Verdict("InsecureFrontendValidationMode", True, "ConfigurationChanged", text))
    usable = {each.listener.owner for each in outcomes if each.is_programmed} if accepted.holds else set()
    return Assessment(
        verdicts=tuple(verdicts),
        listeners=tuple(_state(each, is_served, programmed.message) for each in own),
        addresses=(("IPAddress", address.value),) if address.value else None,
        listener_sets=sum(each.meta.key in usable for each in entry.sets),
    )


def _state(found: ListenerOutcome, is_served: bool, why: str) -> ListenerState:
    """Return the entry of a listener; one that is ready is not programmed while its Gateway is not served."""
    state = found.state()
    if is_served or not found.is_programmed:
        return state
    return replace(state, verdicts=changed(state.verdicts, "Programmed", reason="Pending", message=why))


def _trusts_anybody(entry: Entry) -> bool:
    frontend = entry.spec.tls.frontend
    every = (frontend.default, *(each.tls for each in frontend.per_port))
    return any(each.validation is not None and each.validation.mode == "AllowInsecureFallback" for each in every)


def _message_of(wrong: Unresolved | None) -> str:
    return wrong.message if wrong else ""
