"""Findings: everything that needs attention, in one list ordered by severity.

They come from the problems of objects, from rejected and blocked records, from upstreams without nodes and from
certificates. `cluster_findings` and `watch_findings` change without a new snapshot and are added on each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from apisix_ingress.diagnostics.shortfalls import NO_ENDPOINTS, exists, idle
from apisix_ingress.diagnostics.wanted_certificates import WantedCertificate
from apisix_ingress.gateway.sync.comparison.audit import REMEDY
from apisix_ingress.gateway.sync.observer import HEADLINES
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.table import CODES
from apisix_ingress.model.states import FAILING_HOSTS, SEVERITIES, Severity
from apisix_ingress.statuspage.inputs import PageCluster, PageInputs
from apisix_ingress.statuspage.summary.certificates import Certificate
from apisix_ingress.statuspage.summary.entry import SERVES_LAST, Entry
from apisix_ingress.statuspage.summary.hosts import EVERY_HOST, Host
from apisix_ingress.statuspage.summary.times import emptied_since, problem_since, rejected_since

PAUSED = f"Writes are paused. {SERVES_LAST}."

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
        hosts: The hosts that it harms, for the heading.
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
    hosts: tuple[str, ...] = ()

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


class Victims:
    """The hosts that objects harm.

    Args:
        hosts: Every host.
        wanted: Certificates that are missing.
    """

    def __init__(self, hosts: Iterable[Host], wanted: Iterable[WantedCertificate] = ()) -> None:
        self.closed: list[Host] = []
        """The hosts whose requests all get an error."""
        self._hosts: dict[ObjectKey, list[str]] = {}
        self._failing: set[ObjectKey] = set()
        for host in hosts:
            harming = dict.fromkeys(host.unpublished)
            if host.failing is not None:
                harming |= dict.fromkeys(host.failing.owners)
            if host.status == "closed":
                self.closed.append(host)
            if host.status in FAILING_HOSTS:
                self._failing |= harming.keys()
            for owner in harming:
                self._hosts.setdefault(owner, []).append(host.name)
        for each in wanted:
            self._hosts.setdefault(each.owner, []).extend(each.hosts)

    def of(self, owner: ObjectKey) -> tuple[str, ...]:
        """Return the hosts that an object harms."""
        return tuple(dict.fromkeys(self._hosts.get(owner, ())))

    def severity(self, owner: ObjectKey, severity: Severity) -> Severity:
        """Return the severity of a problem: an error if all requests for a host fail because of the object."""
        return "error" if severity == "degraded" and owner in self._failing else severity


def problem_findings(
    facts: PageInputs, owner: ObjectKey, problems: Iterable[Problem], victims: Victims
) -> Iterator[Finding]:
    """Yield what is wrong with an object."""
    for each in problems:
        known = CODES.get(each.code)
        title = known.title if known is not None else each.code
        severity, hosts = victims.severity(owner, each.severity), victims.of(owner)
        hosts = () if severity == "warning" else hosts
        since = problem_since(facts, owner, each)
        yield Finding(severity, title, each.message, each.code, each.path, owner, since=since, hosts=hosts)


def closed_finding(host: Host) -> Finding:
    """Return that all requests for a host get an error."""
    assert host.response is not None
    assert host.failing is not None
    title, code = f"Every request gets the response {host.response.status}", "HostClosed"
    message = f"The gateway responds itself: {host.response.cause}."
    owner, key = host.failing.owner, host.failing.key
    return Finding("error", title, message, code, object=owner, record=key, hosts=(host.name,))


def record_findings(
    facts: PageInputs, entry: Entry, users: Mapping[RecordKey, list[str]], victims: Victims
) -> Iterator[Finding]:
    """Yield what is wrong with a record.

    Args:
        facts: The inputs.
        entry: The record.
        users: Upstream → hosts of the routes that use it.
        victims: The hosts that objects harm.
    """
    hosts = entry.hosts if entry.key.kind == "routes" else ()
    about = Finding("error", "", "", "", object=entry.owner, record=entry.key, hosts=hosts)
    for cluster, state in entry.states:
        of_state = replace(about, message=state.message, cluster=cluster)
        if state.kind == "rejected":
            since = rejected_since(facts, entry, cluster)
            yield replace(of_state, title=f"Gateway cluster {cluster} rejects the record", code="Rejected", since=since)
        elif state.kind == "waiting":
            title = f"Blocked by another record in gateway cluster {cluster}"
            yield replace(of_state, severity="degraded", title=title, code="Blocked")
    if entry.is_empty and entry.key in users and exists(facts.world, entry.owner):
        harmed = users[entry.key]
        message = f"{idle(entry.owner)}. Check that its Pods run and are ready."
        closed = {host.name for host in victims.closed}
        severity: Severity = "degraded" if closed.isdisjoint(harmed) else "error"
        named = tuple(host for host in harmed if host != EVERY_HOST)
        title = "Requests get the response 503, because no endpoint is ready"
        about = replace(about, severity=severity, title=title, message=message, code=NO_ENDPOINTS)
        yield replace(about, hosts=named, since=emptied_since(facts, entry))


def undelivered(facts: PageInputs, entry: Entry) -> Iterator[Finding]:
    """Yield the gateway clusters that do not have the current version of a record because they do not respond.

    They are shown with the object: in the list of all problems, the outage of the cluster stands for them.
    """
    outages = {each.name: facts.outage(each) for each in facts.clusters}
    for cluster, state in entry.states:
        if state.kind == "unreachable" and (outage := outages.get(cluster)) is not None:
            title = f"Gateway cluster {cluster} does not have the current version"
            message = f"{outage.cause}. The version is written when the cluster responds. {SERVES_LAST}."
            about = Finding("degraded", title, message, "Undelivered", object=entry.owner, record=entry.key)
            yield replace(about, cluster=cluster, since=outage.since)


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
    message = f"The certificate for {listed(list(each.entry.hosts))} {text}.{source}"
    severity: Severity = "warning" if validity == "expires soon" else "error"
    owner, key = each.entry.owner, each.entry.key
    since = contents.ends if validity == "expired" else None
    hosts = each.entry.hosts
    return Finding(severity, title, message, "CertificateExpiry", object=owner, record=key, since=since, hosts=hosts)


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


def listed(hosts: Sequence[str]) -> str:
    """Return the first hosts, and how many there are more."""
    shown = ", ".join(hosts[:_HOSTS_NAMED])
    return f"{shown} and {len(hosts) - _HOSTS_NAMED} more" if len(hosts) > _HOSTS_NAMED else shown
