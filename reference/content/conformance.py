"""The page of Gateway API conformance, from the last report of the official suite."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from reference.markdown import cell, code, table

REPORT = Path(__file__).parents[2] / "e2e" / "conformance" / "report.yaml"

_VERIFIED = (
    "APISIX 3.18 does not verify the certificates of backends. Requests to a Service with a policy are rejected."
)

_EXPERIMENTAL = (
    "The field `retry` is experimental and served only with `gateway_api.experimental`. The suite ran without it."
)

REASONS = {
    "BackendTLSPolicy": _VERIFIED,
    "BackendTLSPolicySANValidation": _VERIFIED,
    "GatewayBackendClientCertificate": "Its tests need BackendTLSPolicy.",
    "GatewayInfrastructure": "The controller creates no Pods, Services or ServiceAccounts for a Gateway.",
    "HTTPRouteRetry": "APISIX does not retry by status code.",
    "HTTPRouteRetryBackendTimeout": _EXPERIMENTAL,
    "HTTPRouteRetryConnectionError": _EXPERIMENTAL,
}
"""Feature that is not supported → the reason."""

PROFILES_WITHOUT_REPORT = {
    "GATEWAY-TLS": "Its core needs TLS passthrough, which APISIX 3.18 does not have. TLSRoutes at listeners with "
    "`mode: Terminate` work.",
    "MESH-HTTP, MESH-GRPC": "This is not a service mesh.",
}

INTRODUCTION = """\
# Gateway API conformance

Results of the official conformance suite of the [Gateway API](https://gateway-api.sigs.k8s.io/), version {version},
{channel} channel, on {date}. The gateway was {gateway}, with one address for each Gateway
(`gateway_api.address_pool`). `make conformance` runs the suite; `e2e/README.md` describes how to run it against your
own gateway. The report is `e2e/conformance/report.yaml`. What each kind supports beyond the suite:
[Use the Gateway API](how-to/gateway-api.md).
"""


class Feature(NamedTuple):
    """A feature beyond the core of a profile."""

    name: str
    supported: bool
    profiles: tuple[str, ...]


def report() -> dict[str, Any]:
    """Return the report."""
    found: dict[str, Any] = yaml.safe_load(REPORT.read_text(encoding="utf-8"))
    return found


def features(found: dict[str, Any]) -> list[Feature]:
    """Return the features of all profiles by name."""
    by_name: dict[str, tuple[bool, list[str]]] = {}
    for profile in found["profiles"]:
        extended = profile.get("extended") or {}
        for key, supported in (("supportedFeatures", True), ("unsupportedFeatures", False)):
            for name in extended.get(key) or ():
                by_name.setdefault(name, (supported, []))[1].append(profile["name"])
    return [Feature(name, supported, tuple(profiles)) for name, (supported, profiles) in sorted(by_name.items())]


def page() -> str:
    """Return the page."""
    found = report()
    introduction = INTRODUCTION.format(
        version=found["gatewayAPIVersion"],
        channel=found["gatewayAPIChannel"],
        date=str(found["date"])[:10],
        gateway="Apache APISIX 3.18",
    )
    rows = [(feature.name, feature) for feature in features(found)]
    supported = [(code(name), cell(", ".join(each.profiles))) for name, each in rows if each.supported]
    others = [(code(name), cell(REASONS[name])) for name, each in rows if not each.supported]
    parts = [
        introduction,
        "## Profiles",
        table(("profile", "core tests", "extended tests"), [_profile(each) for each in found["profiles"]]),
        table(("not run", "reason"), [(name, cell(reason)) for name, reason in PROFILES_WITHOUT_REPORT.items()]),
        "## Supported features",
        f"{len(supported)} beyond the core profiles; the status of the GatewayClass lists them.",
        table(("feature", "profiles"), supported),
        "## Features that are not supported",
        table(("feature", "reason"), others),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _profile(profile: dict[str, Any]) -> tuple[str, str, str]:
    return profile["name"], _statistics(profile.get("core")), _statistics(profile.get("extended"))


def _statistics(part: dict[str, Any] | None) -> str:
    if not part:
        return "none"
    numbers = part["statistics"]
    failed = f", {numbers['Failed']} failed" if numbers["Failed"] else ""
    skipped = f", {numbers['Skipped']} skipped" if numbers["Skipped"] else ""
    return f"{numbers['Passed']} passed{failed}{skipped}"
