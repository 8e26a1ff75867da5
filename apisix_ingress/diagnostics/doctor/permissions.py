"""The permissions that the controller needs at the API server for given settings, and the check for them.

docs/architecture.md has them as a table and the chart as roles; a test compares the roles with this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from apisix_ingress.errors import KubeError
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.settings import Settings
from apisix_ingress.wiring.options import translation_options
from providers.core.registry import resources

AT_ONCE = 8
_AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One verb on one resource; `namespace` and `name` are empty if it is needed on all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """Render for messages: `list secrets in namespace shop`."""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {what}{named}{f' in namespace {self.namespace}' if self.namespace else ''}"


def needed_rights(settings: Settings, namespace: str) -> frozenset[Right]:
    """Return every permission that the controller uses; `namespace` is that of its Lease and ledger."""
    return frozenset((*_of_kinds(settings), *_of_events(settings), *_of_its_own(settings, namespace)))


def _of_kinds(settings: Settings) -> Iterator[Right]:
    kubernetes = settings.kubernetes
    watched = kubernetes.watch_namespaces or ("",)
    for resource in resources(translation_options(settings)):
        if resource.on_demand:
            continue  # objects report Secrets that may not be read
        group, plural, only = resource.group, resource.plural, resource.only
        if only is not None:
            yield from (Right(group, plural, verb, only.namespace, only.name) for verb in ("list", "watch"))
            continue
        for where in watched if resource.namespaced else ("",):
            yield from (Right(group, plural, verb, where) for verb in ("list", "watch"))
            if _has_status(resource, settings):
                yield Right(group, plural, "get", where)
                yield Right(group, f"{plural}/status", "patch", where)


def _has_status(resource: Resource, settings: Settings) -> bool:
    """Return whether the status of a kind is written; for an Ingress, only its addresses are."""
    status = settings.kubernetes.status
    publishes = bool(status.publish_service or status.addresses)
    return status.enabled and bool(resource.status) and (resource.status != "addresses" or publishes)


def _of_events(settings: Settings) -> Iterator[Right]:
    watched = settings.kubernetes.watch_namespaces
    # Events of cluster-scoped objects are in the namespace default.
    for where in dict.fromkeys((*watched, "default")) if watched else ("",):
        if settings.kubernetes.status.enabled:
            yield from (Right("", "events", verb, where) for verb in ("create", "patch"))
            if where in (watched or ("",)):
                yield Right("", "events", "list", where)


def _of_its_own(settings: Settings, namespace: str) -> Iterator[Right]:
    kubernetes = settings.kubernetes
    kinds: list[tuple[str, str, str, tuple[str, ...]]] = [
        ("", "configmaps", f"{kubernetes.controller_name}-ledger", ("get", "update"))
    ]
    if kubernetes.election.enabled:
        kinds.append(("coordination.k8s.io", "leases", kubernetes.election.name, ("get", "update", "patch")))
    for group, plural, name, verbs in kinds:
        yield Right(group, plural, "create", namespace)
        yield from (Right(group, plural, verb, namespace, name) for verb in verbs)


async def missing_rights(api: KubeApi, rights: Iterable[Right], account: str = "") -> tuple[Right, ...]:
    """Return the missing permissions.

    Args:
        api: The API server.
        rights: The permissions to check.
        account: `namespace/name` of a service account; empty: the current credentials.

    Raises:
        KubeError: They cannot be determined.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def has(right: Right) -> bool:
        async with slots:
            return await _is_allowed(api, right, account)

    asked = sorted(rights)
    answers = await asyncio.gather(*(has(right) for right in asked), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return tuple(right for right, answer in zip(asked, answers, strict=True) if not answer)


async def _is_allowed(api: KubeApi, right: Right, account: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    spec: JsonObject = {"resourceAttributes": {**attributes, "namespace": right.namespace, "name": right.name}}
    kind = "SelfSubjectAccessReview"
    if account:
        namespace, _, name = account.partition("/")
        kind, spec["user"] = "SubjectAccessReview", f"system:serviceaccount:{namespace}:{name}"
        spec["groups"] = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    body: JsonObject = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": {}, "spec": spec}
    answer = await api.create(f"{_AUTHORIZATION}/{kind.lower()}s", body)
    status = answer.get("status")
    if not isinstance(status, dict):
        raise KubeError("the response to an access review is empty")
    return status.get("allowed") is True
