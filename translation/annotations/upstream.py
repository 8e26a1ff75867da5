"""Annotations that configure the upstreams of an Ingress."""

from __future__ import annotations

from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.state.claims import UpstreamOverrides
from translation.annotations.reader import Annotations

_SCHEMES = frozenset({"http", "https", "grpc", "grpcs"})
_PARTS = ("upstream-connect-timeout", "upstream-send-timeout", "upstream-read-timeout")


def overrides(annotations: Annotations) -> UpstreamOverrides:
    """upstream-scheme, upstream-retries and the timeouts; a part of the timeouts that is not set is 0."""
    connect, send, read = (_timeout(annotations, name) for name in _PARTS)
    given = any((connect, send, read))
    return UpstreamOverrides(
        scheme=_scheme(annotations),
        retries=annotations.number("upstream-retries"),
        timeout=(connect, send, read) if given else None,
    )


def _scheme(annotations: Annotations) -> str | None:
    scheme = annotations.text("upstream-scheme").lower()
    if not scheme or scheme in _SCHEMES:
        return scheme or None
    annotations.warn("upstream-scheme", f"{scheme!r} is unknown and ignored; use http, https, grpc or grpcs")
    return None


def _timeout(annotations: Annotations, name: str) -> float:
    """Return seconds; 0 if absent. A plain number is in seconds, as in 1.8."""
    text = annotations.text(name)
    if not text:
        return 0
    try:
        return parse_duration(text)
    except ValueError:
        annotations.warn(name, f"{text!r} is ignored; write a duration such as 5s or 500ms, or a number of seconds")
        return 0
