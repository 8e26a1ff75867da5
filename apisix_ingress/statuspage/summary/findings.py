"""Findings: everything that needs attention, in one list ordered by severity.

They come from the problems of objects, from rejected and blocked records, from upstreams without nodes and from
certificates. `cluster_findings` and `watch_findings` change without a new snapshot and are added on each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from apisix_ingress.gateway.sync.comparison.audit import REMEDY
from apisix_ingress.gateway.sync.observer import HEADLINES
from apisix_ingress.kube.status.condition_list import of_type
from apisix_ingress.model.condition import CONDITION_TYPE
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.table import CODES
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.summary.certificates import Certificate
from apisix_ingress.statuspage.summary.entry import Entry

Severity = Literal["critical", "error", "degraded", "warning"]
SEVERITIES: tuple[Severity, ...] = ("critical", "error", "degraded", "warning")
"""critical: a whole gateway cluster or the API server; error: not in effect; degraded: in effect in part."""

PAUSED = "Writes are paused. The gateway keeps serving its current records."

_HOSTS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        severity: How urgent it is.
        title: What is wrong, in a few words.
        message: The cause, and the remedy if it is known; may contain secrets until it is cleaned.
        code: The code word of a problem, or a word of the same form.
        field: The field of the object.
        object: The object to correct.
        record: The record that it is about.
        cluster: The gateway cluster that it is about.
        since: When the object's condition became False, or this process first saw it; None: not known.
    """

    severity: Severity
    title: str
    message: str
    code: str
    field: str = ""
    object: ObjectKey | None = None
    record: RecordKey | None = None
    cluster: str = ""
    since: datetime | None = None

    @property
    def rank(self) -> int:
        """Its severity as a number, 0 for the most urgent."""
        return SEVERITIES.index(self.severity)

    @property
    def cause(self) -> tuple[int, str, str, str]:
        """What is the same in findings with one cause; warnings of one code are shown together."""
        message = "" if self.severity == "warning" else self.message
        return self.rank, self.code, self.title, message

    @property
    def place(self) -> tuple[tuple[int, str, str, str], ObjectKey, str]:
        """The sort key of the list: findings with one cause are adjacent."""
        return self.cause, self.object or ObjectKey("", "", self.cluster), self.field


def problem_findings(facts: PageInputs, owner: ObjectKey, problems: Iterable[Problem]) -> Iterator[Finding]:
    """Yield what is wrong with an object."""
    since = failing_since(facts, owner, facts.journal.since(owner))
    for each in problems:
        known = CODES.get(each.code)
        title = known.title if known is not None else each.code
        yield Finding(each.severity, title, each.message, each.code, each.path, owner, since=since)


def failing_since(facts: PageInputs, owner: ObjectKey, here: datetime | None) -> datetime | None:
    """Return since when an object fails: when its condition became False, perhaps by an earlier process, or `here`."""
    store = facts.world.stores.get(owner.kind)
    item = store.get(owner) if store is not None else None
    condition = of_type(item.status, CONDITION_TYPE) if isinstance(item, CustomObject) else None
    if condition is None or condition.get("status") != "False":
        return here
    try:
        written = datetime.strptime(str(condition.get("lastTransitionTime")), "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return here
    known = written.replace(tzinfo=UTC)
    return min(here, known) if here is not None else known


def record_findings(facts: PageInputs, entry: Entry, users: Mapping[RecordKey, list[str]]) -> Iterator[Finding]:
    """Yield what is wrong with a record.

    Args:
        facts: The inputs.
        entry: The record.
        users: Upstream → hosts of the routes that use it.
    """
    about = Finding("error", "", "", "", object=entry.owner, record=entry.key)
    for cluster, state in entry.states:
        of_state = replace(about, message=state.message, cluster=cluster)
        if state.kind == "rejected":
            since = failing_since(facts, entry.owner, facts.journal.since((cluster, entry.key)))
            yield replace(of_state, title=f"Rejected by gateway cluster {cluster}", code="Rejected", since=since)
        elif state.kind == "waiting":
            title = f"Blocked by another record in gateway cluster {cluster}"
            yield replace(of_state, severity="degraded", title=title, code="Blocked")
    if entry.is_empty and entry.key in users:
        hosts = users[entry.key]
        whom = f"requests for {_listed(hosts)}" if hosts else "its connections"
        message = f"The upstream has no nodes, so {whom} fail (503). Check that Pods of the Service are ready."
        yield replace(about, severity="degraded", title="No ready endpoint", message=message, code="NoEndpoints")


def certificate_finding(each: Certificate, now: datetime) -> Finding | None:
    """Return what is wrong with a certificate."""
    validity, contents = each.validity(now), each.contents
    if contents is None or validity == "valid":
        return None
    begins, ends = f"{contents.begins:%Y-%m-%d %H:%M} UTC", f"{contents.ends:%Y-%m-%d %H:%M} UTC"
    title, text = {
        "expired": ("Certificate expired", f"expired at {ends}"),
        "not valid yet": ("Certificate is not valid yet", f"is not valid before {begins}"),
    }.get(validity, ("Certificate expires soon", f"expires at {ends}"))
    source = f" Renew {each.secret}." if each.secret is not None and validity != "not valid yet" else ""
    message = f"The certificate for {_listed(list(each.entry.hosts))} {text}.{source}"
    severity: Severity = "warning" if validity == "expires soon" else "error"
    owner, key = each.entry.owner, each.entry.key
    since = contents.ends if validity == "expired" else None
    return Finding(severity, title, message, "CertificateExpiry", object=owner, record=key, since=since)


def cluster_findings(facts: PageInputs, cluster: PageCluster) -> Iterator[Finding]:
    """Yield what is wrong with a gateway cluster now."""
    name, happened = cluster.name, facts.journal.of(cluster.name)
    if (outage := facts.outage(cluster)) is not None:
        title = f"Gateway cluster {name} is {HEADLINES[outage.reason]}"
        yield Finding("critical", title, f"{outage.cause}. {PAUSED}", "Outage", cluster=name, since=outage.since)
    elif cluster.taken_over and cluster.audit_failure:
        title = f"The last check of gateway cluster {name} failed"
        yield Finding("error", title, cluster.audit_failure, "AuditFailed", cluster=name, since=happened.failed_at)
    if refused := facts.controller.refused.get(name):
        title = f"This replica could not write to gateway cluster {name} as leader"
        yield Finding("error", title, refused, "AdminKeyRejected", cluster=name)
    if happened.held and cluster.taken_over:
        title = f"{happened.held} deletes are held back in gateway cluster {name}"
        message = f"They are an unusually large share of the records: {REMEDY}."
        yield Finding("degraded", title, message, "DeletesHeldBack", cluster=name)


def watch_findings(facts: PageInputs) -> Iterator[Finding]:
    """Yield what keeps objects from being up to date."""
    for what, why in sorted(facts.controller.problems.items()):
        yield Finding("critical", f"Objects are not up to date: {what}", why, "NotUpToDate")


def _listed(hosts: list[str]) -> str:
    shown = ", ".join(hosts[:_HOSTS_NAMED])
    return f"{shown} and {len(hosts) - _HOSTS_NAMED} more" if len(hosts) > _HOSTS_NAMED else shown
