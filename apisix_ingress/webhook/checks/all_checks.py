"""The checks of one object, in order. The controller repeats each of them.

Mistakes in the object itself are denied. Problems that depend on another object, which may be created or changed later,
are warnings: manifests are applied in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from apisix_ingress.kube.client.json_depth import DEEPEST, is_deep
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.resource import imported
from apisix_ingress.model.kinds.table import DECODE_ERRORS, RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import World
from apisix_ingress.webhook.checks import gateway_objects
from apisix_ingress.webhook.checks.certificate_hosts import host_conflicts, taken_hosts
from apisix_ingress.webhook.checks.ignored_annotations import TrackedAnnotations, useless_annotations
from apisix_ingress.webhook.checks.nginx_ingress import nginx_warnings
from apisix_ingress.webhook.overlay import OverlayView
from apisix_ingress.webhook.review import ALLOWED, Review, Verdict, mapping
from apisix_ingress.webhook.schemas.plugin_configs import Books, check_plugins, plugin_uses
from crds import KINDS
from translation.core.options import Options
from translation.core.outcome import records_of
from translation.core.scope import is_ours
from translation.core.translators import translate
from translation.hosts.certificate_conflicts import CONFLICT
from translation.hosts.host_owners import NOT_OWNED
from translation.policies import fold

CLASS_CHANGED = "The ingressClassName field is not allowed to be modified."
"""The message of 1.8."""

SPEC_MISSING = "Spec cannot be empty"
"""The message of 1.8."""

NEW_NAME = "generated"
"""End of the name of an object that has no name yet."""

OTHERS = frozenset(
    {
        "Conflicted",
        "ForeignAddress",
        "HostNotOwned",
        "InvalidCertificate",
        "InvalidSecret",
        "NoClusterAddress",
        "NoHosts",
        "NotAnAuthority",
        "NotExternalName",
        "PluginConfigNotFound",
        "PortNotFound",
        "SecretNotFound",
        "ServiceNotFound",
        "UpstreamNotFound",
    }
)
"""Codes of problems that another object can cause and fix: a Secret, a Service, a plugin config."""

OWN = frozenset({"InvalidUsername", "UnsafeRecord"})
"""Codes of problems that do not make a translation fail, although gateways would reject or misuse the record."""

CHECKED = frozenset(kind for kind, row in RESOURCES.items() if row.translator) | gateway_objects.CHECKED
"""Kinds that are checked."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The inputs of every check.

    Attributes:
        world: Stores and records of the controller; only read.
        options: The settings.
        books: Returns what the gateway clusters publish, as known now.
        now: Returns the wall clock time, aware.
        unknown: Receives each gateway cluster that does not know a plugin.
        shows_others: Whether the client may learn about problems in other objects, including Secrets.
    """

    world: World
    options: Options
    books: Callable[[], Books]
    now: Callable[[], datetime]
    unknown: Callable[[str], None] = lambda cluster: None
    shows_others: bool = True

    def verdict(self, review: Review) -> Verdict:
        """Return the response to a request."""
        if review.operation not in ("CREATE", "UPDATE") or review.subresource:
            return ALLOWED
        resource = RESOURCES.get(review.kind)
        if review.kind not in CHECKED or resource is None or resource.group != review.group:
            name = f"{review.resource}.{review.group}".strip(".") or "this kind"
            return Verdict(warnings=(f"{name} is not supported by this webhook: it was not checked",))
        if mapping(review.object, "metadata").get("deletionTimestamp"):
            return ALLOWED
        if is_deep(review.object, DEEPEST):
            return Verdict((f"it has more than {DEEPEST} levels of nesting, which is not supported",))
        try:
            item = _decoded(review, review.object)
        except DECODE_ERRORS as error:
            return Verdict((f"it cannot be read: {error}",))
        return self._of(item, review.object, _decoded_old(review))

    def _of(self, item: CustomObject, raw: JsonObject, old: CustomObject | None) -> Verdict:
        view = OverlayView(self.world, item, shows_secrets=self.shows_others)
        if item.meta.kind in gateway_objects.CHECKED:
            return self._of_gateway_api(item, old, view)
        ours = is_ours(item, view, self.options)
        if self.options.nginx is not None and (found := self._of_nginx(item, old, view)):
            return Verdict(warnings=found)
        if not ours and (old is None or not is_ours(old, view, self.options)):
            return ALLOWED
        if old is not None and _class_changed(item, old):
            return Verdict((CLASS_CHANGED,))
        if not ours or (old is not None and _unchanged(item, old)):
            return ALLOWED
        if RESOURCES[item.meta.kind].spec_required and raw.get("spec") is None:
            return Verdict((SPEC_MISSING,))
        return self._checked(item, old, view)

    def _of_gateway_api(self, item: CustomObject, old: CustomObject | None, view: OverlayView) -> Verdict:
        if item.meta.kind not in self.world.stores or (old is not None and _unchanged(item, old)):
            return ALLOWED
        found = gateway_objects.gateway_warnings(item, view, self.options, shows_others=self.shows_others)
        return Verdict(warnings=tuple(found))

    def _of_nginx(self, item: CustomObject, old: CustomObject | None, view: OverlayView) -> tuple[str, ...]:
        """Return the warnings about an Ingress of ingress-nginx, which is never denied."""
        if old is not None and _unchanged(item, old):
            return ()
        return tuple(nginx_warnings(item, view, self.options, shows_others=self.shows_others))

    def _checked(self, item: CustomObject, old: CustomObject | None, view: OverlayView) -> Verdict:
        tracked = TrackedAnnotations(item.meta.annotations)
        watched = replace(item, meta=replace(item.meta, annotations=tracked))
        outcome = fold(translate(watched, view, self.options, self.now()), view.inputs(self.options))
        taken = taken_hosts(item, old, self.world.view(), self.options) if self.shows_others else ()
        conflicts = (*host_conflicts(item, old, view, self.options), *taken)
        # A denied mistake is not repeated in the controller's wording.
        problems = [
            problem for problem in outcome.problems if not (conflicts and problem.code in (CONFLICT, NOT_OWNED))
        ]
        if not self.shows_others:
            problems = [problem for problem in problems if _is_of_itself(problem)]
        denials = [str(problem) for problem in problems if _is_denied(problem)]
        warnings = [str(problem) for problem in problems if not _is_denied(problem)]
        uses = plugin_uses(item, view, self.options, records_of(outcome))
        plugins = check_plugins(uses, self.books(), self.unknown)
        warnings += [*_notes(item, self.options), *plugins.warnings]
        if RESOURCES[item.meta.kind].annotated:
            warnings += map(str, useless_annotations(tracked))
        return Verdict((*denials, *plugins.denials, *conflicts), tuple(warnings))


def _notes(item: CustomObject, options: Options) -> Iterator[str]:
    """Yield the warnings that are specific to a kind: valid, but possibly surprising."""
    if notes := RESOURCES[item.meta.kind].webhook:
        yield from imported(notes)(item, options)


def _decoded(review: Review, raw: JsonObject) -> CustomObject:
    """Return the object; a name that the API server still has to generate is filled in."""
    metadata = mapping(raw, "metadata")
    name = metadata.get("name") or review.name or f"{metadata.get('generateName') or ''}{NEW_NAME}"
    namespace = metadata.get("namespace") or review.namespace
    decoded = RESOURCES[review.kind].decode({**raw, "metadata": {**metadata, "name": name, "namespace": namespace}})
    assert isinstance(decoded, CustomObject)  # every kind with a translator is a custom object
    return decoded


def _decoded_old(review: Review) -> CustomObject | None:
    """Return the previous version of the object; None if it is new or unreadable."""
    if review.operation != "UPDATE" or is_deep(review.old_object, DEEPEST):
        return None
    try:
        return _decoded(review, review.old_object)
    except DECODE_ERRORS:
        return None


def _class_changed(item: CustomObject, old: CustomObject) -> bool:
    before = old.spec.get("ingressClassName")
    return item.meta.kind in KINDS and bool(before) and item.spec.get("ingressClassName") != before


def _unchanged(item: CustomObject, old: CustomObject) -> bool:
    """Return whether nothing relevant for a check changed: such an object stays editable despite its problems."""
    annotated = RESOURCES[item.meta.kind].annotated and item.meta.annotations != old.meta.annotations
    return item.spec == old.spec and not annotated


def _is_denied(problem: Problem) -> bool:
    if problem.severity == "error":
        return _is_of_itself(problem)
    return problem.code in OWN


def _is_of_itself(problem: Problem) -> bool:
    """Return whether a problem does not involve another object."""
    return problem.origin is None and problem.code not in OTHERS
