"""Builder: assembles the translation of one object."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from apisix_ingress.model import names
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.network.host_claims import MOST_NAMES, has_too_many
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.model.records import NO_NAMES, Record, references
from apisix_ingress.state.claims import UpstreamClaim, weakened
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.view import View
from translation.core.context import Context, Trail
from translation.core.holds import holds_by_name
from translation.core.options import Options
from translation.core.outcome import KeepLast, Outcome, Published, Withdrawn
from translation.hosts.host_owners import NOT_OWNED, HostOwners

if TYPE_CHECKING:
    from crds.v2.upstream import ApisixUpstreamSpec

MOST_ENTRIES = 100_000
"""Maximum number of combinations of a host and a path for one object, with the preset: 0.2 s of work for a gateway."""


class Builder(Context):
    """Records, claims and problems of one object, and the names of its records."""

    def __init__(self, meta: Meta, view: View, options: Options) -> None:
        super().__init__(meta.kind, meta.namespace, view, options)
        self.meta = meta
        # Thousands of rules may refer to one ApisixUpstream with thousands of parts: it is validated once.
        # They may also refer to one Service with thousands of ports: by number and by name.
        self.ports: dict[ObjectKey, dict[int | str, int]] = {}
        self.judged: dict[ObjectKey, tuple[ApisixUpstreamSpec | None, Context] | None] = {}
        self.external: dict[ObjectKey, Context] = {}
        self.plugin_configs: dict[ObjectKey, tuple[JsonObject, Context]] = {}
        self.granted_trail = Trail()
        """The Services that hosts led to with a grant for each namespace, as the Gateway API requires."""
        self._records: list[Record] = []
        self._claims: dict[UpstreamClaim, None] = {}
        self._protected: list[Hold] = []
        self._carried_over: dict[RecordKey, FrozenJson] = {}
        self._held: list[Hold] = []
        self._meant: dict[RecordKey, str] = {}
        self._entries = 0

    @cached_property
    def owners(self) -> HostOwners:
        """The owners of hosts."""
        return HostOwners(self.view, self.options)

    def usable(self, hosts: Sequence[str], path: str) -> list[str]:
        """Return the hosts that the object's namespace may use, and report the others. No hosts means every host.

        Args:
            hosts: As written, or the empty string for every host.
            path: The list in the object.
        """
        if self.options.host_ownership == "shared":
            return list(hosts)
        found = []
        for index, host in enumerate(hosts):
            if why := self.owners.refusal(self.namespace, host):
                self.degrade(NOT_OWNED, f"{path}[{index}]" if len(hosts) > 1 else path, why)
            else:
                found.append(host)
        return found

    def claims_too_much(self, obj: CustomObject) -> bool:
        """Return whether an object names too many hosts, and report it; its published records are withdrawn."""
        if self.options.host_ownership == "shared" or not has_too_many(obj):
            return False
        message = f"has more than {MOST_NAMES} hosts, including the wildcards over them; split the object"
        self.revoke("TooManyHosts", "spec", message)
        return True

    def new_body(self, kind: RecordKind, name: str, *, labelled: bool = False) -> JsonObject:
        """Return the start of a body: id, name, desc and labels, with the object's own labels on request."""
        return {
            "id": self.view.record_id(kind, name),
            "name": names.truncated(name),
            "desc": names.DESC,
            "labels": names.owner_labels(self.options.controller_name, self.meta.labels if labelled else None),
        }

    def record(self, kind: RecordKind, name: str, body: JsonObject, *, existing_only: bool = False) -> None:
        """Add a record; its id is derived from `name`."""
        if kind == "routes" and self.options.judges_plugins:
            self._count_entries(body)
        if self.is_full:
            return
        meant = NO_NAMES
        if self._meant:
            meant = {key: self._meant[key] for key in references(kind, body) if key in self._meant} or NO_NAMES
        self.add(Record(RecordKey(kind, body["id"]), name, body, None, existing_only, meant))

    @property
    def is_full(self) -> bool:
        """Whether a limit was exceeded; the problem has been reported."""
        return self._entries > MOST_ENTRIES or super().is_full

    def _count_entries(self, route: JsonObject) -> None:
        """Account for the entries that a gateway adds to its router for a route, at every change of any route."""
        before = self._entries
        self._entries += max(1, len(route.get("hosts", ()))) * len(route.get("uris", ()))
        if before <= MOST_ENTRIES < self._entries:
            message = f"generates more than {MOST_ENTRIES:,} combinations of a host and a path; use fewer of them"
            self.error("TooLarge", "spec", message)

    def add(self, record: Record) -> None:
        """Add a record whose body has no id, or that belongs to some clusters only."""
        self._records.append(record)
        self.enlarge(record.size)

    def refer(self, kind: RecordKind, name: str) -> str:
        """Return the id of a record that other records of this object refer to."""
        id_ = self.view.record_id(kind, name)
        self._meant[RecordKey(kind, id_)] = name
        return id_

    def claim(self, claim: UpstreamClaim) -> None:
        """Add an upstream that the records need."""
        self._claims[claim] = None

    def protect(
        self,
        kind: RecordKind,
        *,
        prefix: str = "",
        ids: frozenset[str] = frozenset(),
        names: frozenset[str] = frozenset(),
    ) -> None:
        """Protect records in a gateway from deletion while the object has errors."""
        if prefix or ids or names:
            self._protected.append(Hold(kind, prefix, ids, names))

    def carry_over(self, key: RecordKey, **fields: object) -> None:
        """Keep the last published version of a record, except for these fields."""
        self._carried_over[key] = fields

    def retain(self, kind: RecordKind, name: str) -> None:
        """Keep the last version of a record whose source is missing, even if an earlier process wrote it."""
        self.carry_over(RecordKey(kind, self.view.record_id(kind, name)))
        self._held.append(Hold(kind, names=frozenset({name})))

    def finish(self) -> Outcome:
        """Return the outcome: everything is published, or nothing after an error."""
        problems, protected = tuple(dict.fromkeys(self.problems)), tuple(self._protected)
        if self.withdrawal:
            return Withdrawn(self.withdrawal, problems=problems, deletable=self._deletable())
        if self.has_refused_content:
            return KeepLast(problems=problems, deletable=self._deletable())
        if any(problem.severity == "error" for problem in problems):
            return KeepLast(protected, weakened(self._claims), problems=problems)
        is_partial = any(problem.code == NOT_OWNED for problem in problems)
        is_renamed = any(record.key.kind == "consumers" for record in self._records)
        return Published(
            tuple(self._records),
            tuple(self._claims),
            protected,
            frozenset(self.references),
            frozenset(self.destinations),
            self._carried_over,
            problems=problems,
            deletable=self._deletable() if is_partial or is_renamed else (),
            held=tuple(self._held),
        )

    def _deletable(self) -> tuple[Hold, ...]:
        return (*holds_by_name(self.meta.key), *self._protected)
