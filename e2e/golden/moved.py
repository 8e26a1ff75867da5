"""Golden cases with hosts of their own, so that one API server can have many of them.

`a.example.com` of the case `x` becomes `a.x.example.com`, in its objects and in its records. Ids that are generated
from a host are replaced with the ids of the new host, by the rules of 1.8. Nothing here does I/O.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from e2e.cluster.client import Manifest
from tests.golden.cases import Case
from tests.golden.recorded import recordings

DOMAIN = "example.com"
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"

RecordsByKind = dict[str, list[Manifest]]


@dataclass(frozen=True)
class MovedCase:
    """One case; states are numbered, and the last one applies to every later number."""

    case: Case

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.case.states)

    def objects(self, number: int) -> tuple[Manifest, ...]:
        """Return the objects of a state."""
        return tuple(self._moved(list(self.case.objects(self._state(number)))))

    def want(self, number: int) -> RecordsByKind:
        """Return the wanted records by kind."""
        records: RecordsByKind = self._moved(self.case.want(self._state(number))["records"])
        return records

    def problems(self, number: int) -> Mapping[str, list[str]]:
        """Return the problems of each object that the controller handles."""
        found: Mapping[str, list[str]] = self.case.want(self._state(number))["problems"]
        return found

    def recorded(self, number: int) -> RecordsByKind:
        """Return the records that controller 1.8 sent, with the private keys that the recordings omit."""
        states = recordings()[self.case.path.name].states
        recorded = states[min(number, len(states) - 1)].records
        ours = [record for state in self.case.states for record in self.case.want(state)["records"].get("ssls", ())]
        keys = {record["cert"]: record["key"] for record in ours}
        ssls = [each | {"key": keys[each["cert"]]} for each in recorded.get("ssls", ()) if each["cert"] in keys]
        moved: RecordsByKind = self._moved({**recorded, "ssls": ssls})
        return moved

    def _state(self, number: int) -> str:
        return self.case.states[min(number, self.states - 1)]

    def _moved(self, document: Any) -> Any:
        text = json.dumps(document)
        for old, new in self._ids.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        return json.loads(self._host(text))

    def _host(self, text: str) -> str:
        return text.replace(DOMAIN, f"{self.case.path.name}.{DOMAIN}")

    @cached_property
    def _ids(self) -> dict[str, str]:
        """Names and ids that are made from a host → those of the new host."""
        found: dict[str, str] = {}
        for state in self.case.states:
            for item in self.case.objects(state):
                if item["kind"] == "Ingress":
                    found |= dict([*self._route_names(item), *self._certificate_ids(item)])
        return found

    def _route_names(self, ingress: Manifest) -> Iterator[tuple[str, str]]:
        prefix = f"ing_{ingress['metadata']['namespace']}_{ingress['metadata']['name']}_"
        for rule in ingress["spec"].get("rules", ()):
            host = rule.get("host", "")
            for path in (rule.get("http") or {}).get("paths", ()):
                tail = path.get("path", "")
                old, new = prefix + crc(host + tail), prefix + crc(self._host(host) + tail)
                yield old, new
                yield crc(old), crc(new)

    def _certificate_ids(self, ingress: Manifest) -> Iterator[tuple[str, str]]:
        namespace, name = ingress["metadata"]["namespace"], ingress["metadata"]["name"]
        for entry in ingress["spec"].get("tls", ()):
            hosts = entry.get("hosts", [])
            moved = [self._host(host) for host in hosts]
            old, new = (certificate_id(namespace, name, each, entry["secretName"]) for each in (hosts, moved))
            yield old, new


def crc(text: str) -> str:
    """Return the id that 1.8 assigns to a name."""
    return f"{zlib.crc32(text.encode()):x}"


def certificate_id(namespace: str, ingress: str, hosts: list[str], secret: str) -> str:
    """Return the id of the record for a tls entry: a hash over an ApisixTls that 1.8 made up, padded with NUL."""
    spec = {"hosts": hosts or None, "secret": {"name": secret, "namespace": namespace}}
    metadata = {"namespace": namespace, "creationTimestamp": None}
    made_up = {
        "kind": "ApisixTls",
        "apiVersion": "apisix.apache.org/v1",
        "metadata": metadata,
        "spec": spec,
        "status": {},
    }
    digest = hashlib.sha1(json.dumps(made_up, separators=(",", ":")).encode(), usedforsecurity=False).digest()
    encoded = base64.urlsafe_b64encode(digest)
    suffix = "".join(SUFFIX[byte % len(SUFFIX)] for byte in encoded[:6])
    return crc(f"{namespace}_{ingress}-tls-{suffix}" + "\0" * (len(encoded) - 6))
