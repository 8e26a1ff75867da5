"""Scope: what every part of a translation works with, and how objects that are referred to are found.

A reference that can't be followed is noted as a problem here, so that each one is worded the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.model.problem import Problem, Severity
from apisix_ingress.state.view import View
from crds import SpecError
from translation.core.grants import Destination, Reference, is_granted
from translation.core.options import Options
from translation.core.scope import class_of

MOST_TOLD = 100
"""Problems of one severity that are told of one object: each is a line in the log."""

_LONGEST_MESSAGE = 1000
_LONGEST_PATH = 300
"""Characters; both may quote a text of the user."""


MOST_FOLLOWED = 1000
"""Addresses behind Services that are judged for one object, beside those of Pods of the Services' own namespaces."""


MOST_BYTES = 32 * 2**20
"""Bytes of what is made of one object: small texts of it may refer to the same large ones again and again."""

MOST_SECRET_BYTES = 64 * 2**10
"""Bytes of a Secret that go into one record: what gateways take of a certificate, a key or a CA (APISIX ssl schema),
and far more than a credential has. Thousands of small objects may refer to one Secret, and each becomes a copy."""


@dataclass(slots=True)
class Trail:
    """What bounds the work for an object: the Services that its hosts led to, each followed once, and its size.

    Attributes:
        found: Service → what is wrong with where it leads; empty if nothing is.
        open: Services that are being followed.
        circles: How often the way came back to one of these.
        left: Addresses that may still be judged.
        bytes: Of the records so far, and of Secrets, as often as they are referred to.
    """

    found: dict[ObjectKey, str] = field(default_factory=dict)
    open: set[ObjectKey] = field(default_factory=set)
    circles: int = 0
    left: int = MOST_FOLLOWED
    bytes: int = 0


class Context:
    """The view, the settings and the problems found so far, for an object of one namespace.

    Args:
        kind: Of the referring object.
        namespace: Where the referring object lives; references without a namespace point there.
        view: What may be asked.
        options: The settings.
    """

    def __init__(self, kind: str, namespace: str, view: View, options: Options) -> None:
        self.kind = kind
        self.namespace = namespace
        self.view = view
        self.options = options
        self.problems: list[Problem] = []
        self.destinations: dict[Destination, None] = {}
        """The hosts that it may name as things are; only where the settings ask for what hosts are in the cluster."""
        self.trail = Trail()
        """The Services that hosts led to."""
        self._told: Counter[Severity] = Counter()
        self.references: dict[Reference, None] = {}
        """What is referred to by a grant."""
        self.revoked = False
        """Whether a reference lacks its grant: what was published by it must go."""
        self.reviewed = 0
        """How much of the object's plugins was reviewed."""
        self.forbidden = False
        """Whether the object holds what the settings refuse."""

    def within(self, kind: str, namespace: str) -> Context:
        """Return the scope of another object that this one stands or falls with; what was followed is known there."""
        other = Context(kind, namespace, self.view, self.options)
        other.trail = self.trail
        return other

    def error(self, code: str, path: str, message: str) -> None:
        """Note a problem that keeps the object from being published."""
        self._note(code, path, message, "error")

    def degrade(self, code: str, path: str, message: str) -> None:
        """Note a problem that lets the object be published with a False condition."""
        self._note(code, path, message, "degraded")

    def warn(self, code: str, path: str, message: str) -> None:
        """Note a problem that is told, and nothing else."""
        self._note(code, path, message, "warning")

    def adopt(self, other: Context, path: str, source: ObjectKey) -> None:
        """Take over what was found in an object that this one stands or falls with, told at `path`."""
        for problem in other.problems:
            text = f"{source}: {problem}"
            self.problems.append(Problem(problem.code, text, path, problem.severity, problem.origin or source))
        self.references |= other.references
        self.destinations |= other.destinations
        self.revoked |= other.revoked
        self.forbidden |= other.forbidden

    def misfit(self, error: SpecError) -> None:
        """Note each mistake of a spec that does not fit its kind."""
        for path, message in error.problems:
            self.error("InvalidSpec", path, message)

    @property
    def is_full(self) -> bool:
        """Whether more would be made of the object than may be; that was noted."""
        return self.trail.bytes > MOST_BYTES

    def enlarge(self, size: int) -> None:
        """Note that so many bytes more were made of the object, or are about to be."""
        was_full = self.is_full
        self.trail.bytes += size
        if self.is_full and not was_full:
            most = f"{MOST_BYTES // 2**20} MiB"
            message = f"becomes more than {most} of records and Secrets; refer to large ones less often"
            self.error("TooLarge", "spec", message)

    def is_too_large(self, secret: Secret, keys: Iterable[str], path: str) -> bool:
        """Say whether values of a Secret are too large to become a part of a record, and note it."""
        found = [key for key in keys if key in secret.data]
        size = sum(len(key) + len(secret.data[key]) for key in found)
        if size <= MOST_SECRET_BYTES:
            return False
        named = " and ".join(found) if len(found) < 3 else "its keys"
        most = f"at most {MOST_SECRET_BYTES} bytes of a Secret go into a record"
        self.error("TooLarge", path, f"{secret.meta.key} has {size} bytes under {named}: {most}; shorten it")
        return True

    def refuses(self, target: ObjectKey) -> bool:
        """Say whether a reference crosses namespaces without the grant that the settings ask for, and note it."""
        if self.options.cross_namespace == "allow" or target.namespace == self.namespace:
            return False
        reference = Reference(self.kind, self.namespace, target)
        if is_granted(reference, self.view):
            self.references[reference] = None
            return False
        self.revoked = True
        return True

    def secret(self, name: str, path: str, *, namespace: str = "") -> Secret | None:
        """Return a Secret, or note that it is missing."""
        if self.is_full:
            return None
        key = ObjectKey("Secret", namespace or self.namespace, name)
        found = None if self.refuses(key) else self.view.get(Secret, key)
        if found is None:
            self.missing("SecretNotFound", path, key)
            return None
        self.enlarge(sum(map(len, found.data.values())))
        return None if self.is_full else found

    def custom(self, key: ObjectKey) -> CustomObject | None:
        """Return a custom resource, or None if it is absent or not granted."""
        return None if self.refuses(key) else self.view.get(CustomObject, key)

    def missing(self, code: str, path: str, key: ObjectKey) -> None:
        """Note an object that does not exist. Absent and not granted are told in the same words."""
        if key.namespace == self.namespace:
            self.error(code, path, f"{key} does not exist; create it or correct the name")
            return
        ask = ", or have a ReferenceGrant made there" if self.options.cross_namespace == "grant" else ""
        who = f"from namespace {self.namespace}"
        self.error(
            code, path, f"{key} does not exist or may not be referred to {who}; create it or correct the name{ask}"
        )

    def foreign(self, code: str, path: str, found: CustomObject) -> None:
        """Note an object that exists and belongs to another controller."""
        self.error(code, path, self.whose(found))

    def whose(self, found: CustomObject, so: str = "") -> str:
        """Return that an object belongs to another controller, what comes of that, and what to do."""
        name, ours = class_of(found), self.options.ingress_class
        return f"{found.meta.key} is of class {name}, which is not ours{so}; set its spec.ingressClassName to {ours}"

    def _note(self, code: str, path: str, message: str, severity: Severity) -> None:
        """Keep a problem; of very many the first ones, and of a long text its beginning."""
        self._told[severity] += 1
        if self._told[severity] <= MOST_TOLD:
            self.problems.append(Problem(code, _cut(message, _LONGEST_MESSAGE), _cut(path, _LONGEST_PATH), severity))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length // 2]} … {text[-length // 2 :]}"
