"""Draft: the translation of one object while it is being made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from apisix_ingress.model import names
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.kube import Meta
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.desired import Hold
from apisix_ingress.state.view import View
from translation.context import Options
from translation.result import Translation
from translation.scope import Scope
from translation.texts import check_record

if TYPE_CHECKING:
    from crds.v2.upstream import ApisixUpstreamSpec


class Draft(Scope):
    """Records, claims, holds and problems of one object, gathered piece by piece."""

    def __init__(self, meta: Meta, view: View, options: Options) -> None:
        super().__init__(meta.kind, meta.namespace, view, options)
        self.meta = meta
        # Thousands of rules may refer to one ApisixUpstream, which may have thousands of parts: it is judged once.
        self.judged: dict[ObjectKey, tuple[Scope, ApisixUpstreamSpec | None]] = {}
        self.external: dict[ObjectKey, Scope] = {}
        self.plugin_configs: dict[ObjectKey, Scope] = {}
        self._records: list[Record] = []
        self._claims: dict[UpstreamClaim, None] = {}
        self._holds: list[Hold] = []
        self._kept: dict[RecordKey, FrozenJson] = {}

    def stamp(self, kind: RecordKind, name: str, *, labelled: bool = False) -> JsonObject:
        """Return the beginning of a body: id, name, desc and labels; with the object's own labels if wanted."""
        return {
            "id": self.view.record_id(kind, name),
            "name": names.told(name),
            "desc": names.DESC,
            "labels": names.owner_labels(self.options.controller_name, self.meta.labels if labelled else None),
        }

    def record(self, kind: RecordKind, name: str, body: JsonObject, *, existing_only: bool = False) -> None:
        """Add a record; `name` is what its id is made from."""
        check_record(self, kind, body)
        key = RecordKey(kind, body["id"])
        self._records.append(Record(key, name, body, existing_only=existing_only))

    def claim(self, claim: UpstreamClaim) -> None:
        """Add an upstream that the records need."""
        self._claims[claim] = None

    def hold(
        self,
        kind: RecordKind,
        *,
        prefix: str = "",
        ids: frozenset[str] = frozenset(),
        names: frozenset[str] = frozenset(),
    ) -> None:
        """Tell which records of a gateway are this object's."""
        if prefix or ids or names:
            self._holds.append(Hold(kind, prefix, ids, names))

    def keep(self, key: RecordKey, **fields: object) -> None:
        """Let a record stay as it was published last, but for these fields."""
        self._kept[key] = fields

    def finish(self) -> Translation:
        """Return the translation: everything, or after an error what protects the records of before.

        What a setting refuses is not protected: a gateway may have it from when it was allowed.
        """
        problems = tuple(dict.fromkeys(self.problems))
        if self.revoked or self.forbidden:
            return Translation(problems=problems, revoked=self.revoked)
        whole = Translation((), tuple(self._claims), problems, tuple(self._holds))
        if whole.failed:
            return replace(whole, claims=tuple(replace(claim, weak=True) for claim in self._claims))
        return replace(
            whole,
            records=tuple(self._records),
            kept=self._kept,
            references=frozenset(self.references),
            destinations=frozenset(self.destinations),
        )
