"""A standalone gateway of a simulation: a document in memory replaces its records, by the rules of APISIX 3.18.

Each record that a document changes is a write, which is checked like a write to a gateway with etcd.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.simulation.servers.gateway import KINDS, Body, Key, SimGateway, Write, guarded, invalid

EMPTY = ("consumer_groups", "plugins", "protos", "secrets", "services")
"""Kinds that no story has."""


@dataclass(slots=True)
class SimStandalone(SimGateway):
    """One standalone gateway."""

    _versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 2**20))  # of an earlier term
    _indexes: dict[Key, int] = field(default_factory=dict)
    _digest: str = "of-another-client"
    _modified: int = 0
    _manual: int = 0

    def headers(self) -> dict[str, str]:
        """Return the headers of its document."""
        return {"X-Digest": self._digest, "X-Last-Modified": str(self._modified)} if self._digest else {}

    def is_deaf_to(self, method: str, path: str, status: int) -> bool:
        """Return whether the fault suppresses the response to a document."""
        return method == "PUT" and self.rng.random() < self.fault.deaf

    # Manual changes.

    def meddle(self, key: Key, body: Body | None) -> None:
        """Change a record by a newer document of another client."""
        SimGateway.meddle(self, key, body)
        self._versions[key[0]] += 1
        self._is_of_another_client()

    def restore(self, records: dict[str, dict[str, Body]]) -> None:
        """Restart without a document, and get one from another client."""
        SimGateway.restore(self, records)
        self._indexes.clear()
        self._versions = dict.fromkeys(KINDS, 1)
        self._is_of_another_client()

    def _is_of_another_client(self) -> None:
        self._manual += 1
        self._digest = f"of-another-client-{self._manual}"

    # The Admin API.

    def answer(
        self, method: str, path: str, payload: bytes, writer: tuple[str, int], *, given_up: bool = False
    ) -> tuple[int, Body]:
        """Handle a request, which may have been given up; return status and body."""
        match method, path:
            case "HEAD", "configs":
                self.lists += 1
                return 200, {}
            case "GET", "configs":
                return 200, self._document()
            case "POST", "configs/validate":
                errors = _errors(orjson.loads(payload))
                return (400, {"errors": errors}) if errors else (200, {})
            case "PUT", "configs":
                return self._put(orjson.loads(payload), writer, given_up=given_up)
        return 404, {}

    def _document(self) -> Body:
        found: Body = {f"{kind}_conf_version": 0 for kind in EMPTY}
        found |= {f"{kind}_conf_version": version for kind, version in self._versions.items()}
        for kind, records in self.records.items():
            found[kind] = [
                body | ({"modifiedIndex": self._indexes[kind, id_]} if (kind, id_) in self._indexes else {})
                for id_, body in records.items()
            ]
        return found

    def _put(self, document: Body, writer: tuple[str, int], *, given_up: bool) -> tuple[int, Body]:
        digest = document.pop("digest")
        if digest == self._digest:
            return 204, {}
        for kind, version in self._versions.items():
            if document[f"{kind}_conf_version"] < version:
                return 400, {"error_msg": f"{kind}_conf_version must be greater than or equal to ({version})"}
        if errors := _errors(document):
            return 400, {"error_msg": errors[0]["error"]}
        self.accepted += 1
        self._digest, self._modified = digest, int(asyncio.get_running_loop().time())
        changed = [kind for kind in KINDS if document[f"{kind}_conf_version"] > self._versions[kind]]
        self._versions |= {kind: document[f"{kind}_conf_version"] for kind in changed}
        self._load({kind: _items(kind, document[kind]) for kind in changed}, writer, given_up=given_up)
        return 202, {}

    def _load(self, document: dict[str, dict[str, Body]], writer: tuple[str, int], *, given_up: bool) -> None:
        """Carry out what changes, so that no reference is missing in between."""
        now = asyncio.get_running_loop().time()
        for kind, items in document.items():
            for id_, item in items.items():
                key, index = (kind, id_), item.pop("modifiedIndex", None)
                is_loaded = id_ in self.records[kind] and index is not None and index == self._indexes.get(key)
                if not is_loaded and self.records[kind].get(id_) != item:
                    self._note(Write(now, writer, "PUT", key, item, given_up))
                    self.records[kind][id_] = item
                    (self.excused.add if given_up else self.excused.discard)(key)
                if index is not None:
                    self._indexes[key] = index
        for kind in reversed(KINDS):
            for id_ in sorted(self.records[kind].keys() - document.get(kind, self.records[kind]).keys()):
                self._note(Write(now, writer, "DELETE", (kind, id_), None, given_up))
                del self.records[kind][id_]
        self._check_references(given_up=given_up)

    def _check_references(self, *, given_up: bool) -> None:
        """Check that no record of the document refers to one that it lacks: the gateway accepts such a document."""
        for kind, records in self.records.items():
            for id_, body in sorted(records.items()):
                missing = [key for key in sorted(guarded(body)) if key[1] not in self.records[key[0]]]
                if not given_up and (kind, id_) not in self.excused and not self.excused.issuperset(missing):
                    self.trace.violate(self.name, f"{kind}/{id_} is written without {missing}")


def _errors(document: dict[str, Any]) -> list[Body]:
    return [
        {"resource_type": kind, "index": index, "id": item.get("id"), "error": error}
        for kind, items in document.items()
        if isinstance(items, list)
        for index, item in enumerate(items)
        if (error := invalid(item))
    ]


def _items(kind: str, items: list[Body]) -> dict[str, Body]:
    return {str(item["username"] if kind == "consumers" else item["id"]): item for item in items}
