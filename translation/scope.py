"""Scope: what every part of a translation works with, and how objects that are referred to are found.

A reference that can't be followed is noted as a problem here, so that each one is worded the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import CustomObject, Secret
from apisix_ingress.model.problem import Problem, Severity
from apisix_ingress.state.view import View
from crds import SpecError
from translation.context import Options


class Scope:
    """The view, the settings and the problems found so far, for an object of one namespace.

    Args:
        namespace: Where the referring object lives; references without a namespace point there.
        view: What may be asked.
        options: The settings.
    """

    def __init__(self, namespace: str, view: View, options: Options) -> None:
        self.namespace = namespace
        self.view = view
        self.options = options
        self.problems: list[Problem] = []

    def error(self, code: str, path: str, message: str) -> None:
        """Note a problem that keeps the object from being published."""
        self._note(code, path, message, "error")

    def degrade(self, code: str, path: str, message: str) -> None:
        """Note a problem that lets the object be published with a False condition."""
        self._note(code, path, message, "degraded")

    def warn(self, code: str, path: str, message: str) -> None:
        """Note a problem that is told, and nothing else."""
        self._note(code, path, message, "warning")

    def adopt(self, problems: Iterable[Problem], path: str, source: ObjectKey) -> None:
        """Take over the problems of an object that this one depends on, told at `path`."""
        for problem in problems:
            self._note(problem.code, path, f"{source}: {problem}", problem.severity)

    def misfit(self, error: SpecError) -> None:
        """Note each mistake of a spec that does not fit its kind."""
        for path, message in error.problems:
            self.error("InvalidSpec", path, message)

    def refuses(self, target: ObjectKey) -> bool:
        """Say whether a reference crosses namespaces although the settings don't let it."""
        return self.options.cross_namespace == "grant" and target.namespace != self.namespace

    def secret(self, name: str, path: str, *, namespace: str = "") -> Secret | None:
        """Return a Secret, or note that it is missing."""
        key = ObjectKey("Secret", namespace or self.namespace, name)
        found = None if self.refuses(key) else self.view.get(Secret, key)
        if found is None:
            self.missing("SecretNotFound", path, key)
        return found

    def custom(self, key: ObjectKey) -> CustomObject | None:
        """Return a custom resource, or None if it is absent or not granted."""
        return None if self.refuses(key) else self.view.get(CustomObject, key)

    def missing(self, code: str, path: str, key: ObjectKey) -> None:
        """Note an object that does not exist. Absent and not granted are told in the same words."""
        foreign = key.namespace != self.namespace
        hint = f" or may not be referred to from namespace {self.namespace}" if foreign else ""
        self.error(code, path, f"{key} does not exist{hint}; create it or correct the name")

    def _note(self, code: str, path: str, message: str, severity: Severity) -> None:
        self.problems.append(Problem(code, message, path, severity))
