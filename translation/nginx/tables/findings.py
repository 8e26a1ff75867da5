"""Findings: the verdicts on the annotations of one Ingress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.judges import lenient
from translation.nginx.tables.values import Outcome, Values, boolean
from translation.nginx.tables.verdicts import Verdict, no_effect

UNKNOWN = no_effect("ingress-nginx 1.15 does not know this annotation.")

_FORMER = {
    "add-base-url": ("0.22", ""),
    "base-url-scheme": ("0.22", ""),
    "enable-influxdb": ("1.7.1", "the plugin prometheus or a logger"),
    "enable-opentracing": ("1.10", "the plugin opentelemetry"),
    "global-rate-limit": ("1.12", "the plugin limit-count with policy redis"),
    "grpc-backend": ("0.21", "backend-protocol: GRPC"),
    "secure-backends": ("0.21", "backend-protocol: HTTPS"),
    "session-cookie-hash": ("0.24", ""),
}
_FORMER_FAMILIES = {
    "global-rate-limit-": _FORMER["global-rate-limit"],
    "influxdb-": _FORMER["enable-influxdb"],
    "lua-resty-waf": ("0.27", "a web application firewall"),
    "opentracing-": _FORMER["enable-opentracing"],
}
"""Annotations, and beginnings of annotations, that ingress-nginx had until a version, and what replaces them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one annotation of one Ingress."""

    annotation: str
    value: str
    verdict: Verdict
    outcome: Outcome | None = None


def judged(values: Values, *, strict: bool = True) -> Iterator[Finding]:
    """Yield the verdict on each annotation of an Ingress, by its value and in the order of the table.

    Args:
        values: The annotations.
        strict: Whether nothing is relaxed.
    """
    for name in sorted(values.given, key=_place):
        value, row = values.given[name], TABLE.get(name)
        if row is None:
            yield Finding(name, value, _of_unknown(name))
        elif row.needs and not any(_is_set(values, need) for need in row.needs):
            needs = " or ".join(row.needs)
            yield Finding(name, value, no_effect(f"It is only used together with {needs}, as in ingress-nginx."))
        elif not strict and (relaxed := lenient(name, value)):
            yield Finding(name, value, relaxed)
        else:
            outcome = row.outcome(value)
            found = row.within(values) if row.within and outcome is None else None
            yield Finding(name, value, found or row.judge(value), outcome)


def _of_unknown(name: str) -> Verdict:
    """Return the verdict on an annotation that ingress-nginx does not have, or no longer has."""
    families = (found for start, found in _FORMER_FAMILIES.items() if name.startswith(start))
    version, instead = _FORMER.get(name) or next(families, ("", ""))
    if not version:
        return UNKNOWN
    advice = f"use {instead}" if instead else "remove it"
    return no_effect(f"ingress-nginx {version} removed this annotation, so it has no effect; {advice}.")


_PLACES = {name: place for place, name in enumerate(TABLE)}


def _place(name: str) -> tuple[int, str]:
    return _PLACES.get(name, len(_PLACES)), name


def _is_set(values: Values, name: str) -> bool:
    value = values.text(name)
    return bool(value) and boolean(value) is not False
