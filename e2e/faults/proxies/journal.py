"""The requests to a gateway: one JSON line per request, written by a proxy and read by tests.

A line contains neither body nor key, only the references in the body and its digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

WRITES = ("PUT", "POST", "PATCH", "DELETE")
ADMIN = "/apisix/admin/"
_WRITER = re.compile(r"\(([^()]*)\)\s*$")
_NAMED = {"upstream_id": "upstreams", "plugin_config_id": "plugin_configs", "service_id": "services"}


@dataclass(slots=True)
class Entry:
    """One request.

    Attributes:
        received: Monotonic time in seconds when it was read completely.
        method: Of the request.
        path: The request target.
        writer: The sender: the identity in the User-Agent, unique to each process.
        refs: Records that the body refers to, e.g. `upstreams/1`.
        digest: Of the body; empty without one.
        certificate: Serial number of the client's certificate, or empty.
        rule: The action that was applied, or empty.
        status: The gateway's status; None if the request was not forwarded or had no response.
        response: The status sent to the client; None without one.
        answered: Monotonic time in seconds at its end.
    """

    received: float
    method: str
    path: str
    writer: str
    refs: list[str] = field(default_factory=list)
    digest: str = ""
    certificate: str = ""
    rule: str = ""
    status: int | None = None
    response: int | None = None
    answered: float = 0.0

    @property
    def record(self) -> str:
        """The record of the path, e.g. `routes/1`."""
        return self.path.partition("?")[0].removeprefix(ADMIN)

    @property
    def is_write(self) -> bool:
        """Whether it is a write."""
        return self.method in WRITES

    @property
    def is_done(self) -> bool:
        """Whether the gateway processed it successfully."""
        return self.status is not None and self.status < 300


def writer_of(agent: str) -> str:
    """Return the identity in a User-Agent like `apisix-ingress/1.0 (pod_1a2b)`; else all of it."""
    found = _WRITER.search(agent)
    return found.group(1) if found else agent


def describe(body: bytes) -> tuple[list[str], str]:
    """Return the records that a body refers to, and its digest."""
    if not body:
        return [], ""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    return sorted(set(references(parsed))), hashlib.sha256(body).hexdigest()[:16]


def references(node: Any) -> Iterator[str]:
    """Yield the references at any depth: a traffic split refers to upstreams deep inside a plugin."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _NAMED and isinstance(value, str | int):
                yield f"{_NAMED[name]}/{value}"
            else:
                yield from references(value)
    elif isinstance(node, list):
        for each in node:
            yield from references(each)


class Journal:
    """The file. Lines are appended as requests end; it may be read at any time, from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def write(self, entry: Entry) -> None:
        """Append a line."""
        if self._file is None:
            self._file = self.path.open("a", buffering=1)
        self._file.write(json.dumps(asdict(entry)) + "\n")

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read(path: Path, after: int = 0) -> list[Entry]:
    """Return the requests in the file except the first ones, in the order in which they ended."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    # The last line may be incomplete.
    return [Entry(**json.loads(line)) for line in lines[after:] if line.endswith("\n")]
