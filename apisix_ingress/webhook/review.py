"""AdmissionReview, versions v1 and v1beta1: from the bytes of a request to its content, and the response.

`checks` decides. No I/O, no secrets: a response contains only the given messages.
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
"""Maximum length of a warning; the API server cuts longer ones."""

WARNINGS = 16
"""Maximum number of warnings: the API server drops everything beyond 4,096 characters."""

MESSAGE_LENGTH = 512
"""Maximum length of one reason for a denial."""

MESSAGES = 32
"""Maximum number of reasons of a denial."""

_INVALID = 422
"""Status of a denial, as for an object that violates its schema."""


class ReviewError(ValueError):
    """A request that is not an AdmissionReview."""


@dataclass(frozen=True, slots=True)
class Review:
    """The content of a request.

    Attributes:
        api_version: That of the AdmissionReview; the response must have the same.
        uid: Identifies the request.
        operation: CREATE, UPDATE, DELETE or CONNECT.
        group: API group of the object.
        kind: Its kind.
        resource: Its plural name, for messages.
        subresource: Such as `status`, or empty.
        namespace: Its namespace, or empty.
        name: Its name; empty if the API server still has to generate it.
        object: The new version of the object; empty for a deletion.
        old_object: The previous version; empty for a creation.
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
    """The response.

    Attributes:
        denials: Why the object is rejected; empty if it is admitted.
        warnings: Warnings for the author of the object.
    """

    denials: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object may be stored."""
        return not self.denials


ALLOWED = Verdict()


def parse_review(content: bytes) -> Review:
    """Return the content of a request.

    Parts that are nested too deeply to be read are omitted; the rest is still too deep for a supported object.

    Raises:
        ReviewError: Not an AdmissionReview, or one of an unknown version.
    """
    try:
        document = orjson.loads(cut(content))
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"the body is not valid JSON: {error.msg}") from None
    if not isinstance(document, dict) or document.get("kind") != "AdmissionReview":
        raise ReviewError("the body is not an AdmissionReview")
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
    """Return the body of the response."""
    response: JsonObject = {"uid": review.uid, "allowed": verdict.allowed}
    if verdict.denials:
        message = "\n".join(_shortened(verdict.denials, MESSAGES, MESSAGE_LENGTH))
        response["status"] = {"status": "Failure", "reason": "Invalid", "code": _INVALID, "message": message}
    if verdict.warnings:
        response["warnings"] = _shortened(verdict.warnings, WARNINGS, WARNING_LENGTH)
    return orjson.dumps({"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response})


def _shortened(texts: Iterable[str], most: int, length: int) -> list[str]:
    """Return the first distinct texts, each on one line (a warning becomes an HTTP header) and shortened."""
    lines = [escape(text) for text in dict.fromkeys(texts)]
    shown = [line if len(line) <= length else f"{line[: length - 1]}…" for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[: most - 1], f"and {len(shown) - most + 1} more"]


def mapping(parent: JsonObject, name: str) -> JsonObject:
    """Return the mapping under a name, or an empty one."""
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _text(parent: JsonObject, name: str) -> str:
    value: Any = parent.get(name)
    return value if isinstance(value, str) else ""
