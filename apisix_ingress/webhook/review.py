"""AdmissionReview, versions v1 and v1beta1: from the bytes of a request to what is asked, and the answer to it.

What is allowed is decided in `checks`. No I/O, no secrets: an answer is made of the messages it is given alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from apisix_ingress.kube.client.json_depth import cut
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.redaction import escape

GROUP = "admission.k8s.io"
VERSIONS = frozenset({f"{GROUP}/v1", f"{GROUP}/v1beta1"})

WARNING_LENGTH = 256
"""Characters of a warning; the API server cuts longer ones off."""

WARNINGS = 16
"""Warnings of an answer: the API server drops all beyond 4,096 characters."""

MESSAGE_LENGTH = 512
"""Characters of one reason for a denial."""

MESSAGES = 32
"""Reasons of a denial that are told."""

_INVALID = 422
"""Status of a denial, as for an object that breaks its schema."""


class ReviewError(ValueError):
    """A request that is no AdmissionReview."""


@dataclass(frozen=True, slots=True)
class Review:
    """What an API server asks.

    Attributes:
        api_version: That of the AdmissionReview; the answer has to have it, too.
        uid: Identifies the request.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        group: API group of the object.
        kind: Its kind.
        resource: Its plural name, for messages.
        subresource: `status` and the like, or empty.
        namespace: Its namespace, or empty.
        name: Its name; empty if the API server has yet to make one up.
        object: The object as it is to be; empty where it is deleted.
        old_object: The object as it was; empty where it is new.
    """

    api_version: str
    uid: str
    operation: str
    group: str = ""
    kind: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    object: JsonObject = field(default_factory=dict, repr=False)
    old_object: JsonObject = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer.

    Attributes:
        denials: Why the object is refused; empty if it is allowed.
        warnings: What the author of the object should know.
    """

    denials: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.denials


ALLOWED = Verdict()


def parse_review(content: bytes) -> Review:
    """Return what is asked.

    What is nested so deeply that it can't be read is left out; what remains is still too deep to be an object of ours.

    Raises:
        ReviewError: It is no AdmissionReview, or one of an unknown version.
    """
    try:
        document = orjson.loads(cut(content))
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"the body is no JSON: {error.msg}") from None
    if not isinstance(document, dict) or document.get("kind") != "AdmissionReview":
        raise ReviewError("the body is no AdmissionReview")
    api_version, request = document.get("apiVersion"), document.get("request")
    if not isinstance(api_version, str) or api_version not in VERSIONS:
        raise ReviewError(f"apiVersion must be one of {', '.join(sorted(VERSIONS))}")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise ReviewError("the AdmissionReview has no request with a uid")
    return _review(api_version, request)


def _review(api_version: str, request: JsonObject) -> Review:
    kind, resource = mapping(request, "kind"), mapping(request, "resource")
    return Review(
        api_version,
        request["uid"],
        _text(request, "operation"),
        group=_text(kind, "group"),
        kind=_text(kind, "kind"),
        resource=_text(resource, "resource"),
        subresource=_text(request, "subResource"),
        namespace=_text(request, "namespace"),
        name=_text(request, "name"),
        object=mapping(request, "object"),
        old_object=mapping(request, "oldObject"),
    )


def render(review: Review, verdict: Verdict) -> bytes:
    """Return the body of the answer."""
    response: JsonObject = {"uid": review.uid, "allowed": verdict.allowed}
    if verdict.denials:
        message = "\n".join(_shortened(verdict.denials, MESSAGES, MESSAGE_LENGTH))
        response["status"] = {"status": "Failure", "reason": "Invalid", "code": _INVALID, "message": message}
    if verdict.warnings:
        response["warnings"] = _shortened(verdict.warnings, WARNINGS, WARNING_LENGTH)
    return orjson.dumps({"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response})


def _shortened(texts: Iterable[str], most: int, length: int) -> list[str]:
    """Return the first distinct texts, each on one line (a warning becomes an HTTP header) and cut to a length."""
    lines = [escape(text) for text in dict.fromkeys(texts)]
    shown = [line if len(line) <= length else f"{line[: length - 1]}…" for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[: most - 1], f"and {len(shown) - most + 1} more"]


def mapping(parent: JsonObject, name: str) -> JsonObject:
    """Return what stands under a name, or an empty mapping where it is none."""
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _text(parent: JsonObject, name: str) -> str:
    value: Any = parent.get(name)
    return value if isinstance(value, str) else ""
