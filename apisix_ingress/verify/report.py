"""The result of a comparison: a document, its text and its page. Credentials in URLs and headers are masked here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.fields import is_secret_of_request
from apisix_ingress.model.secrets.texts import without_credentials
from apisix_ingress.verify.compare import Difference
from apisix_ingress.verify.model import Address, Probe
from apisix_ingress.verify.session import Finding

HIDDEN = "[hidden]"

SHOWN = 5
"""Requests with the same differences that the text names."""

_ORDER = ("answer", "status", "location", "certificate", "backend", "cookie", "header", "body")
"""Aspects, the most serious first."""


@dataclass(slots=True)
class _Seen:
    """A difference over the rounds of a watch."""

    difference: Difference
    rounds: int = 0
    first: str = ""
    last: str = ""


@dataclass(slots=True)
class Summary:
    """The findings of all rounds.

    Attributes:
        old: The gateway with the expected responses.
        new: The gateway under examination.
        skipped: Why requests were skipped → their number.
    """

    old: Address
    new: Address
    skipped: Counter[str] = field(default_factory=Counter)
    _rounds: int = 0
    _sent: int = 0
    _probes: dict[Probe, dict[tuple[str, str], _Seen]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """The number of complete rounds."""
        return self._rounds

    def add(self, findings: Sequence[Finding], at: datetime) -> None:
        """Add a round."""
        self._rounds += 1
        moment = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        for finding in findings:
            self._sent += finding.requests
            seen = self._probes.setdefault(finding.probe, {})
            for found in finding.differences:
                entry = seen.setdefault((found.aspect, found.name), _Seen(found, first=moment))
                entry.difference, entry.rounds, entry.last = found, entry.rounds + 1, moment

    def document(self) -> JsonObject:
        """Return the document that `verify -o json` prints; findings in the order in which requests were sent."""
        findings = [_finding(probe, seen.values()) for probe, seen in self._probes.items() if seen]
        aspects = Counter(each["aspect"] for found in findings for each in found["differences"])
        return {
            "old": str(self.old),
            "new": str(self.new),
            "rounds": self._rounds,
            "probes": len(self._probes),
            "requests": self._sent,
            "different": len(findings),
            "by_aspect": dict(sorted(aspects.items())),
            "skipped": dict(sorted(self.skipped.items())),
            "findings": findings,
        }


def lines(document: JsonObject) -> Iterator[str]:
    """Yield the document as text: requests with the same differences together, the most serious differences first."""
    groups: dict[tuple[tuple[str, ...], ...], list[JsonObject]] = {}
    for found in document["findings"]:
        groups.setdefault(_kind(found), []).append(found)
    for group in sorted(groups.values(), key=_urgency):
        yield from _group(group, document["rounds"])
    for reason, count in document["skipped"].items():
        yield f"skipped: {count} requests: {reason}"
    if groups:
        yield f"{len(groups)} kind{'s' if len(groups) > 1 else ''} of differences: " + ", ".join(
            f"{count}x {aspect}" for aspect, count in document["by_aspect"].items()
        )
    yield _sum(document)


def _kind(found: JsonObject) -> tuple[tuple[str, ...], ...]:
    """Return what two findings must have in common to be written together: bodies differ from path to path."""
    return tuple(
        (each["what"],) if each["aspect"] in ("body", "location") else (each["what"], each["old"], each["new"])
        for each in found["differences"]
    )


def _urgency(group: Sequence[JsonObject]) -> tuple[int, int]:
    return min(_ORDER.index(each["aspect"]) for each in group[0]["differences"]), -len(group)


def _group(group: Sequence[JsonObject], rounds: int) -> Iterator[str]:
    """Yield the requests of a group, some of them by name, and their differences."""
    for found in group[:SHOWN]:
        headers = "".join(f" -H '{each}'" for each in found["headers"])
        yield f"{found['method']} {found['url']}{headers}  ({found['origin']})"
    if len(group) > SHOWN:
        hosts = {urlsplit(found["url"]).netloc for found in group}
        more = len(group) - SHOWN
        requests, of = "request" if more == 1 else "requests", "host" if len(hosts) == 1 else "hosts"
        yield f"... and {more} more {requests}; {len(hosts)} {of} in all (-o json and --html list them)"
    for each in group[0]["differences"]:
        seen = f"  [in {each['rounds']} of {rounds} rounds]" if rounds > 1 else ""
        example = "  [of the first request]" if len(group) > 1 and each["aspect"] in ("body", "location") else ""
        yield f"  {each['what']}: {each['old']} -> {each['new']}{seen}{example}"


def page(document: JsonObject) -> str:
    """Return the report as one self-contained HTML page."""
    loader = PackageLoader("apisix_ingress.verify", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html").render(report=document, sum=_sum(document))


def _sum(document: JsonObject) -> str:
    probes, different = document["probes"], document["different"]
    result = "no differences" if not different else f"{different} of them with different responses"
    return f"{probes} requests compared between {document['old']} and {document['new']}: {result}"


def _finding(probe: Probe, seen: Iterable[_Seen]) -> JsonObject:
    return {
        "method": probe.method,
        "url": without_credentials(probe.url, HIDDEN),
        "headers": [f"{name}: {_shown(name, value)}" for name, value in probe.headers],
        "origin": probe.origin,
        "differences": [
            {
                "what": each.difference.what,
                "aspect": each.difference.aspect,
                "name": each.difference.name,
                "old": _shown(each.difference.name, each.difference.old),
                "new": _shown(each.difference.name, each.difference.new),
                "rounds": each.rounds,
                "first": each.first,
                "last": each.last,
            }
            for each in seen
        ],
    }


def _shown(name: str, value: str) -> str:
    """Return a value without credentials; a header with credentials only shows that it exists."""
    is_public = name.lower() == "cookie" or name.lower().startswith("access-control-")
    if name and value != "absent" and not is_public and is_secret_of_request(name):
        return HIDDEN
    if name.lower() == "cookie":
        return f"{value.partition('=')[0]}={HIDDEN}"
    return without_credentials(value, HIDDEN)
