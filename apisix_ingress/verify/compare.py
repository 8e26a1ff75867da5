"""The differences between two responses to one request that clients can observe. Pure.

Differences that come with any change of gateway are ignored: the generator of an error page, the name of the server,
ids of requests. `session` detects values that vary from one request to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.verify.model import Address, Answer, Probe

Aspect = Literal["answer", "status", "location", "header", "cookie", "body", "backend", "certificate"]

IGNORED_HEADERS = frozenset(
    {
        "age",
        "alt-svc",
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "location",
        "server",
        "set-cookie",
        "transfer-encoding",
        "via",
        "x-request-id",
    }
)
"""Headers that are irrelevant for the service, or compared in another way."""

_IGNORED_PREFIXES = ("x-apisix-", "x-envoy-", "x-kong-", "x-nginx-")

_GENERATED = TextPattern(r"<center>(nginx|openresty)|^\s*\{\s*\"(error_msg|message)\"\s*:|default backend - 404")
"""Pages that gateways generate themselves."""

_HTML_REDIRECT = range(300, 400)
_SHOWN = 200
"""Characters of a value in the report."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One aspect in which responses differ.

    Attributes:
        name: Of the header or cookie; otherwise empty.
        old: The old gateway's value, for display.
        new: The new gateway's value.
    """

    aspect: Aspect
    old: str
    new: str
    name: str = ""

    @property
    def what(self) -> str:
        """The aspect with its name."""
        return f"{self.aspect} {self.name}".strip()


Facts = Mapping[tuple[Aspect, str], str]
"""Aspect and name → its value in a response, in comparable form."""


def facts(
    answer: Answer, probe: Probe, address: Address, ignored: frozenset[str] = frozenset()
) -> dict[tuple[Aspect, str], str]:
    """Return the comparable parts of a response.

    Args:
        answer: The response.
        probe: Its request.
        address: The gateway, whose port is removed from a Location.
        ignored: Further headers to ignore, in lower case.
    """
    if answer.error:
        return {("answer", ""): answer.error}
    found: dict[tuple[Aspect, str], str] = {("status", ""): str(answer.status)}
    for value in answer.values("location"):
        found["location", ""] = location(value, probe, address)
    for name in dict.fromkeys(name for name, _ in answer.headers):
        if name not in IGNORED_HEADERS | ignored and not name.startswith(_IGNORED_PREFIXES):
            found["header", name] = ", ".join(answer.values(name))
    for value in answer.values("set-cookie"):
        name, shape = cookie_shape(value)
        found["cookie", name] = shape
    if answer.backend:
        found["backend", ""] = answer.backend
    if answer.certificate:
        found["certificate", ""] = answer.certificate
    if is_generated(answer):
        # Every gateway has its own error pages: only status and Location are compared.
        found.pop(("header", "content-type"), None)
    elif probe.method != "HEAD":
        found["body", ""] = f"{len(answer.body)} bytes, SHA-256 {answer.digest}"
    return found


def differences(old: Facts, new: Facts) -> Iterator[Difference]:
    """Yield every aspect in which two responses differ; a missing response is the only one then."""
    keys = [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
    if ("answer", "") in keys:
        yield Difference("answer", _answered(old), _answered(new))
        return
    pages = [facts for facts in (old, new) if ("body", "") not in facts]
    for aspect, name in keys:
        if pages and (aspect, name) in (("body", ""), ("header", "content-type")):
            continue  # one of them is a page of the gateway: the status differs, or only the wording
        yield Difference(aspect, _shown(old.get((aspect, name))), _shown(new.get((aspect, name))), name)


def location(value: str, probe: Probe, address: Address) -> str:
    """Return a Location without the port of the tested gateway, relative to the requested host."""
    parts = urlsplit(value)
    try:
        port = parts.port
    except ValueError:
        return value
    if not parts.netloc:
        return value
    host = (parts.hostname or "").lower()
    keeps_port = port is not None and port not in (address.ports.get(parts.scheme), 80, 443)
    netloc = f"{host}:{port}" if keeps_port else host
    return urlunsplit((parts.scheme, netloc, parts.path, parts.query, parts.fragment))


def cookie_shape(value: str) -> tuple[str, str]:
    """Return the name of a cookie and its attributes in a canonical order; its value and dates are ignored."""
    first, *rest = (part.strip() for part in value.split(";"))
    attributes = []
    for part in rest:
        key, _, content = part.partition("=")
        key = key.strip().lower()
        attributes.append(key if key == "expires" or not content else f"{key}={content.strip().lower()}")
    return first.partition("=")[0].strip(), "; ".join(sorted(filter(None, attributes))) or "no attributes"


def is_generated(answer: Answer) -> bool:
    """Return whether a gateway generated the page itself: an error page, or the text of a redirect."""
    if answer.backend:
        return False
    if answer.status in _HTML_REDIRECT:
        return True
    return answer.status >= 400 and (not answer.body or bool(_GENERATED.found(answer.body.decode("utf-8", "replace"))))


def _answered(found: Facts) -> str:
    return _shown(found.get(("answer", ""))) if ("answer", "") in found else f"status {found['status', '']}"


def _shown(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
