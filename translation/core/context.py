"""Context: what every part of a translation works with, and how referenced objects are found.

References that cannot be resolved become problems here, so that all of them have the same wording.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.states import Severity
from apisix_ingress.state.view import View
from crds import SpecError
from translation.core.grants import Destination, Reference, is_granted
from translation.core.options import Options
from translation.core.scope import class_of

MOST_REPORTED = 100
"""Maximum number of problems of one severity per object: each is a line in the log."""

_LONGEST_MESSAGE = 1000
_LONGEST_PATH = 300
"""Characters; both may quote a string of the user."""


MOST_FOLLOWED = 1000
"""Maximum number of addresses behind Services that are checked for one object, in addition to those of Pods in the
Services' namespaces."""


MOST_BYTES = 32 * 2**20
"""Bytes generated for one object: small references in it may refer to the same large values repeatedly."""

MOST_SECRET_BYTES = 64 * 2**10
"""Bytes of a Secret that go into one record: the limit of gateways for a certificate, a key or a CA (APISIX ssl
schema), and far more than a credential has. Thousands of small objects may refer to one Secret, and each becomes a
copy."""


@dataclass(slots=True)
class Trail:
    """Limits the work for an object: the Services that its hosts lead to, each followed once, and its size.

    Attributes:
        found: Service → what is wrong with its destination; empty if nothing is.
        open: Services that are being followed.
        cycles: How often a chain returned to such a Service.
        left: Addresses that may still be checked.
        bytes: Size of the records so far, and of Secrets, counted each time they are referred to.
    """

    found: dict[ObjectKey, str] = field(default_factory=dict)
    open: set[ObjectKey] = field(default_factory=set)
    cycles: int = 0
    left: int = MOST_FOLLOWED
    bytes: int = 0


class Context:
    """The view, the settings and the problems found so far, for an object of one namespace.

    Args:
        kind: Of the referring object.
        namespace: Of the referring object; references without a namespace refer to it.
        view: The objects to read.
        options: The settings.
    """

    def __init__(self, kind: str, namespace: str, view: View, options: Options) -> None:
        self.kind = kind
        self.namespace = namespace
        self.view = view
        self.options = options
        self.problems: list[Problem] = []
        self.destinations: dict[Destination, None] = {}
        """Hosts permitted in the present state of the cluster; only if the settings require the check."""
        self.trail = Trail()
        """The Services that hosts led to."""
        self._reported: dict[Severity, int] = {}
        self.references: dict[Reference, None] = {}
        """References that depend on a grant."""
        self.withdrawal = ""
        """Why not even the last version of the object may stay: a permission is missing. Empty if it may."""
        self.has_refused_content = False
        """Whether the object contains something that the settings refuse."""
        self.reviewed = 0
        """How much of the object's plugins has been reviewed."""

    def within(self, kind: str, namespace: str) -> Context:
        """Return the context of another object that this one depends on; it shares the Services already followed."""
        other = Context(kind, namespace, self.view, self.options)
        other.trail = self.trail
        return other

    def error(self, code: str, path: str, message: str) -> None:
        """Report a problem that prevents the object from being published."""
        self._note(code, path, message, "error")

    def forbid(self, code: str, path: str, message: str) -> None:
        """Report content that the settings refuse: a gateway may have it from a time when it was permitted."""
        self._note(code, path, message, "error")
        self.has_refused_content = True

    def revoke(self, code: str, path: str, message: str) -> None:
        """Report content that the settings refuse, and that the last version of the object must not have either."""
        self.forbid(code, path, message)
        self.withdrawal = self.withdrawal or message

    def degrade(self, code: str, path: str, message: str) -> None:
        """Report a problem that makes the condition of a published object False."""
        self._note(code, path, message, "degraded")

    def warn(self, code: str, path: str, message: str) -> None:
        """Report a problem without any other effect."""
        self._note(code, path, message, "warning")

    def adopt(self, other: Context, path: str, source: ObjectKey) -> None:
        """Adopt the problems of an object that this one depends on, reported at `path`."""
        for problem in other.problems:
            text = f"{source}: {problem}"
            self.problems.append(Problem(problem.code, text, path, problem.severity, problem.origin or source))
        self.references |= other.references
        self.destinations |= other.destinations
        self.withdrawal = self.withdrawal or other.withdrawal
        self.has_refused_content |= other.has_refused_content

    def report_invalid_spec(self, error: SpecError) -> None:
        """Report each mistake of a spec that does not fit its kind."""
        for path, message in error.problems:
            self.error("InvalidSpec", path, message)

    @property
    def is_full(self) -> bool:
        """Whether the size limit was exceeded; the problem has been reported."""
        return self.trail.bytes > MOST_BYTES

    def enlarge(self, size: int) -> None:
        """Account for bytes that were or will be generated for the object."""
        was_full = self.is_full
        self.trail.bytes += size
        if self.is_full and not was_full:
            most = f"{MOST_BYTES // 2**20} MiB"
            message = f"generates more than {most} of records and Secrets; refer to large ones less often"
            self.error("TooLarge", "spec", message)

    def is_too_large(self, secret: Secret, keys: Iterable[str], path: str) -> bool:
        """Return whether values of a Secret are too large to become a part of a record; report it if so."""
        found = [key for key in keys if key in secret.data]
        size = sum(len(key) + len(secret.data[key]) for key in found)
        if size <= MOST_SECRET_BYTES:
            return False
        named = " and ".join(found) if len(found) < 3 else "its keys"
        most = f"at most {MOST_SECRET_BYTES} bytes of a Secret go into a record"
        self.error("TooLarge", path, f"{secret.meta.key} has {size} bytes under {named}: {most}; shorten it")
        return True

    def refuses(self, target: ObjectKey) -> bool:
        """Return whether a reference crosses namespaces without the grant that the settings require."""
        if self.options.cross_namespace == "allow" or target.namespace == self.namespace:
            return False
        if self.is_granted(self.kind, self.namespace, target):
            return False
        self.withdrawal = "a reference to another namespace needs a ReferenceGrant"
        return True

    def is_granted(self, kind: str, namespace: str, target: ObjectKey) -> bool:
        """Return whether objects of a kind and namespace may refer to a target; record uses of a grant."""
        if target.namespace == namespace:
            return True
        reference = Reference(kind, namespace, target)
        if not is_granted(reference, self.view):
            return False
        self.references[reference] = None
        return True

    def secret(self, name: str, path: str, *, namespace: str = "", severity: Severity = "error") -> Secret | None:
        """Return a Secret, or report that it is missing."""
        if self.is_full:
            return None
        key = ObjectKey("Secret", namespace or self.namespace, name)
        found = None if self.refuses(key) else self.view.get(Secret, key)
        if found is None:
            self.missing("SecretNotFound", path, key, severity)
            return None
        self.enlarge(sum(map(len, found.data.values())))
        return None if self.is_full else found

    def custom(self, key: ObjectKey) -> CustomObject | None:
        """Return a custom resource, or None if it does not exist or is not granted."""
        return None if self.refuses(key) else self.view.get(CustomObject, key)

    def missing(self, code: str, path: str, key: ObjectKey, severity: Severity = "error") -> None:
        """Report an object that does not exist. The message for a missing grant is the same."""
        what = f"{key} does not exist" + (self._unread_secret() if key.kind == "Secret" else "")
        if key.namespace == self.namespace:
            self._note(code, path, f"{what}; create it or correct the name", severity)
            return
        ask = ", or add a ReferenceGrant there" if self.options.cross_namespace == "grant" else ""
        who = f"from namespace {self.namespace}"
        message = f"{what}, or references {who} are not permitted; create it or correct the name{ask}"
        self._note(code, path, message, severity)

    def _unread_secret(self) -> str:
        """Return the other reasons why a Secret may be missing."""
        labels = self.options.secret_selector
        lacks = f", lacks the labels of secret_selector ({labels})" if labels else ""
        forbidden = ", or the controller is not permitted to read it" if self.options.secrets == "referenced" else ""
        return lacks + forbidden

    def foreign(self, code: str, path: str, found: CustomObject) -> None:
        """Report an object that exists and belongs to another controller."""
        self.error(code, path, self.whose(found))

    def whose(self, found: CustomObject, so: str = "") -> str:
        """Return the message that an object belongs to another controller, with the effect and the remedy."""
        name, ours = class_of(found), self.options.ingress_class
        return (
            f"{found.meta.key} has class {name}, which belongs to another controller{so}; set its"
            f" spec.ingressClassName to {ours}"
        )

    def _note(self, code: str, path: str, message: str, severity: Severity) -> None:
        """Keep a problem, up to a maximum number; a long text is shortened in the middle."""
        count = self._reported[severity] = self._reported.get(severity, 0) + 1
        if count <= MOST_REPORTED:
            self.problems.append(Problem(code, _cut(message, _LONGEST_MESSAGE), _cut(path, _LONGEST_PATH), severity))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length // 2]} … {text[-length // 2 :]}"
