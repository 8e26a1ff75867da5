"""The shapes of what commands print with `-o json`, from which the published JSON Schemas are generated.

Tests validate the output of the commands against these models, which accept no other fields. A published schema allows
further fields, because later versions may add some.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FOLDER = "docs/reference/schemas"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Reference(_Model):
    """An object of Kubernetes."""

    kind: str
    namespace: str = Field(description="Empty for cluster-scoped kinds.")
    name: str


class Finding(_Model):
    """A mistake in a manifest."""

    code: str = Field(pattern=r"^AIX\d{4}$")
    name: str
    level: Literal["error", "warning", "note"]
    file: str
    line: int
    column: int
    object: Reference | None
    path: str
    message: str


class Lint(_Model):
    """`lint -o json`."""

    findings: list[Finding]


class Problem(_Model):
    """A problem of an object, or of a file."""

    object: Reference | None
    code: str
    path: str
    message: str


class Translate(_Model):
    """`translate -o json`."""

    records: dict[str, list[dict[str, Any]]] = Field(description="Kind of record → bodies as sent to the Admin API.")
    problems: list[Problem]


class Change(_Model):
    """A record that a sync would write, delete, hold back, keep or refuse, or that the gateway would reject."""

    act: Literal["create", "update", "delete", "hold", "keep", "refuse", "reject"]
    record: str = Field(description="Kind and id, such as routes/46eb0e41.")
    name: str
    owner: Reference | None
    why: str
    before: dict[str, Any] | None = Field(default=None, description="Masked; absent with --stat.")
    after: dict[str, Any] | None = Field(default=None, description="Masked; absent with --stat.")


class Diff(_Model):
    """`diff -o json`."""

    cluster: str
    url: str
    version: str
    changes: list[Change]
    counts: dict[str, int]
    unchanged: int
    notes: list[str]
    elsewhere: list[Diff] = Field(default=[], description="The other gateway clusters that were compared.")


class GatewayRecord(_Model):
    """A record of a gateway."""

    record: str
    name: str
    owner: Reference | None
    holder: str | None = Field(default=None, description="The controller that it belongs to, if known.")
    missing: str | None = Field(default=None, description="The record that it refers to and that does not exist.")


class Orphans(_Model):
    """`orphans -o json`."""

    cluster: str
    url: str
    orphans: list[GatewayRecord]
    kept: list[GatewayRecord]
    foreign: list[GatewayRecord]
    dangling: list[GatewayRecord]


class Adoption(_Model):
    """What was done with a record."""

    record: str
    name: str
    owner: Reference | None
    act: Literal["adopt", "refuse", "nothing"]
    why: str


class Adopt(_Model):
    """`adopt -o json`."""

    cluster: str
    url: str
    applied: bool
    records: list[Adoption]


class Replacement(_Model):
    """What was done with a record of 2.x."""

    record: str
    name: str
    owner: Reference | None
    act: Literal["replace", "delete", "keep"]
    why: str


class Replace2x(_Model):
    """`replace-2x -o json`."""

    cluster: str
    url: str
    applied: bool
    records: list[Replacement]


class Leader(_Model):
    """The leader according to its Lease."""

    lease: str
    state: Literal["held", "stale", "free", "absent", "unreadable", "off"]
    holder: str
    renewed_seconds_ago: float | None
    problem: str


class Cluster(_Model):
    """A gateway cluster."""

    name: str
    url: str
    reachable: bool
    in_sync: bool
    trouble: str
    since: str = Field(description="When it stopped responding, as RFC 3339; empty if it responds or is not known.")
    version: str
    checked: str = Field(description="When its records were last read and compared, as RFC 3339; empty if never.")
    records: dict[str, int] | None = Field(description="`wanted`, `there` and the number in other states.")


class ObjectState(_Model):
    """The state of an object."""

    object: Reference
    state: Literal["ok", "failed", "waiting", "pending"]
    reason: str = Field(description="A word such as ServiceNotFound; with several problems, that of the first.")
    message: str
    since: str = Field(description="When the condition became what it is, as RFC 3339; empty if it is not known.")


class Unread(_Model):
    """A kind that could not be read."""

    kind: str
    reason: str


class Hint(_Model):
    """What is missing, and the next command."""

    text: str
    command: str = Field(description="Empty if there is none.")


class Status(_Model):
    """`status -o json`, also with --url."""

    healthy: bool
    version: str
    controller: str
    leader: Leader
    clusters: list[Cluster]
    objects: dict[str, dict[str, int]] = Field(description="Kind → state → number of objects.")
    items: list[ObjectState] = Field(description="Objects that need attention; all of them with --all.")
    unread: list[Unread]
    hint: Hint | None = Field(None, description="What is missing, if no object that defines routes is served.")


class Wait(_Model):
    """`wait -o json`."""

    object: Reference
    outcome: Literal["live", "failed", "timed out"]
    reason: str
    message: str


class Check(_Model):
    """A check of doctor."""

    name: str
    level: Literal["OK", "WARN", "FAIL", "SKIP"]
    message: str
    fix: str


class Doctor(_Model):
    """`doctor -o json`."""

    healthy: bool
    counts: dict[str, int]
    checks: list[Check]


class Node(_Model):
    """An address behind an upstream."""

    address: str
    weight: int | None
    pod: Reference | None


class TreeUpstream(_Model):
    """An upstream of a route."""

    record: str
    name: str
    owner: Reference | None
    missing: bool
    discovery: str
    nodes: list[Node]


class TreeRoute(_Model):
    """A route of a path."""

    record: str
    name: str
    owner: Reference | None
    listener: str = Field(description="The listener of the Gateway that the route is attached to, if any.")
    priority: int
    methods: list[str]
    conditions: int
    responds: str = Field(description="What the gateway itself responds, e.g. a redirect; empty if a backend does.")
    upstreams: list[TreeUpstream]


class TreePath(_Model):
    """A path of a host."""

    path: str
    routes: list[TreeRoute]


class TreeHost(_Model):
    """A host; empty for routes of every host."""

    host: str
    paths: list[TreePath]


class TreeStream(TreeRoute):
    """A route of TCP or UDP connections."""

    port: int | None
    sni: str


class Tree(_Model):
    """`tree -o json`."""

    hosts: list[TreeHost]
    streams: list[TreeStream]


class Backend(_Model):
    """An upstream of a host."""

    name: str
    nodes: int


class HostCertificate(_Model):
    """The certificate that TLS clients of a host get."""

    validity: str
    expires: str = Field(description="As RFC 3339; empty if the certificate cannot be read.")
    secret: Reference | None


class HostState(_Model):
    """A host."""

    host: str = Field(description="`*` for routes of every host.")
    state: str
    summary: str
    since: str = Field(description="Since when the cause exists, as RFC 3339; empty if that is not known.")
    cause: str = Field(description="Why it has its state; empty if that needs no attention.")
    routes: int
    backends: list[Backend]
    certificate: HostCertificate | None
    objects: list[Reference]


class Hosts(_Model):
    """`hosts -o json`."""

    hosts: list[HostState]


class RecordChange(_Model):
    """The latest change of a record in a gateway cluster."""

    at: str = Field(description="As RFC 3339.")
    change: Literal["created", "restored", "updated", "deleted"] = Field(
        description="restored: another client had deleted the record."
    )
    cluster: str
    record: str = Field(description="Kind and id, such as routes/46eb0e41.")
    name: str
    times: int = Field(description="How often the record changed in the last hour.")
    object: Reference | None
    words: list[str] = Field(description="What changed, in sentences; empty if it is not known.")


class Changes(_Model):
    """`changes -o json`."""

    began: str = Field(description="When the leader started, as RFC 3339.")
    note: str = Field(description="What is not known about earlier changes.")
    changes: list[RecordChange]


class CertificateState(_Model):
    """A certificate, or one that an object names and that no gateway has."""

    validity: Literal["valid", "expires soon", "expired", "not valid yet", "unreadable", "missing", "unknown"]
    expires: str = Field(description="As RFC 3339; empty if it is missing or cannot be read.")
    hosts: list[str]
    issuer: str
    cause: str = Field(description="Why it is missing; empty if it is not.")
    object: Reference
    secret: Reference | None


class Certificates(_Model):
    """`certificates -o json`."""

    certificates: list[CertificateState]


DOCUMENTS: dict[str, type[BaseModel]] = {
    "adopt": Adopt,
    "replace-2x": Replace2x,
    "certificates": Certificates,
    "changes": Changes,
    "diff": Diff,
    "doctor": Doctor,
    "hosts": Hosts,
    "lint": Lint,
    "orphans": Orphans,
    "status": Status,
    "translate": Translate,
    "tree": Tree,
    "wait": Wait,
}
"""Command → its document."""


def schema(command: str) -> dict[str, Any]:
    """Return the published JSON Schema of the document of a command."""
    found = _open(DOCUMENTS[command].model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def files() -> dict[str, str]:
    """Return every schema: path below the project → text."""
    return {f"{FOLDER}/{name}.json": json.dumps(schema(name), indent=2) + "\n" for name in sorted(DOCUMENTS)}


def _open(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _open(item) for name, item in value.items() if name != "additionalProperties" or item is not False
        }
    return [_open(item) for item in value] if isinstance(value, list) else value
