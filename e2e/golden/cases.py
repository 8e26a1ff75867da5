"""The golden cases on a real API server: their objects, in namespaces of their own, and the expected records.

The expected records are written to a second gateway, which adds the same defaults: so whole values can be compared
without code of the product.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.conftest import OWN
from e2e.devgateway.process import DevGateway
from e2e.golden.moved import MovedCase, RecordsByKind
from e2e.story import condition
from tests.golden.cases import Case, all_cases, load, normal
from tests.golden.recorded import FAILING, recordings

Records = dict[str, dict[str, Any]]
"""`routes/1` → the stored value."""

UNLABELLED = ("global_rules", "plugin_metadata")
ORDER = (
    "secrets",
    "upstreams",
    "protos",
    "plugin_configs",
    "ssls",
    "consumer_groups",
    "consumers",
    *UNLABELLED,
    "routes",
    "stream_routes",
)
"""Objects are applied after the objects that they refer to."""
OF_THE_GATEWAY = ("create_time", "update_time")
GROUP = "apisix.apache.org/v2"
SYSTEM = "ingress-apisix"
"""The namespace of controller 1.8, which several cases use."""
SKIP_MIRROR = {"endpointslice.kubernetes.io/skip-mirror": "true"}


def recorded_cases(options: Mapping[str, Any] | None = None) -> dict[str, MovedCase]:
    """Return the cases recorded from controller 1.8 with exactly these settings, by name."""
    found = (case for case in all_cases() if case.path.name in recordings())
    return {case.path.name: MovedCase(case) for case in found if settings(case) == dict(options or {})}


def settings(case: Case) -> dict[str, Any]:
    """Return the settings of a case that differ from the defaults."""
    path = case.path / "options.yaml"
    return dict(load(path)[0]) if path.exists() else {}


def identity(item: Manifest) -> tuple[str, str, str]:
    """Return the kind, namespace and name."""
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


@dataclass
class Place:
    """The objects of some cases on the API server. Namespaces have `label`; other controllers ignore them."""

    api: KubeClient
    cases: Mapping[str, MovedCase]
    label: str = field(default_factory=lambda: secrets.token_hex(3))
    _there: dict[tuple[str, str, str], Manifest] = field(default_factory=dict)

    @property
    def selector(self) -> str:
        """The label selector of the namespaces."""
        return f"e2e-story={self.label}"

    def go_to(self, number: int) -> None:
        """Make the objects those of a state: first delete the removed ones, then apply the new and changed ones."""
        wanted = {identity(item): item for case in self.cases.values() for item in self._objects(case, number)}
        for key in [key for key in self._there if key not in wanted]:
            self._delete(key)
        changed = [item for key, item in wanted.items() if self._there.get(key) != item]
        for item in [item for item in changed if item["kind"] == "Namespace"]:
            self._apply(item)
        self._wait_namespaces({item["metadata"].get("namespace", "") for item in changed} - {""})
        for item in [item for item in changed if item["kind"] != "Namespace"]:
            self._apply(item)

    def clear(self, *, wait: bool) -> None:
        """Delete everything; with `wait`, return when it is gone."""
        keys = [key for key in self._there if not key[1] or key[1] == SYSTEM]
        for key in keys:
            self._delete(key)
        for kind, namespace, name in keys if wait else ():
            self.api.wait(kind, name, lambda item: item is None, "to be gone", namespace=namespace, timeout=120)

    def _objects(self, case: MovedCase, number: int) -> Iterator[Manifest]:
        items = case.objects(number)
        named = {item["metadata"]["name"] for item in items if item["kind"] == "Namespace"}
        for name in sorted({item["metadata"].get("namespace", "") for item in items} - named - {""}):
            yield self._labelled({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield from (self._labelled(item) for item in items)

    def _labelled(self, item: Manifest) -> Manifest:
        more: Mapping[str, str] = {}
        if item["kind"] == "Namespace":
            more = OWN | {"e2e-story": self.label}
        if item["kind"] == "Endpoints":
            # Use the slices of the case only: the controller manager must not mirror them.
            more = SKIP_MIRROR
        labels = {**item["metadata"].get("labels", {}), **more}
        return {**item, "metadata": {**item["metadata"], "labels": labels}}

    def _apply(self, item: Manifest) -> None:
        self.api.apply(item)
        if "status" in item:
            kind, namespace, name = identity(item)
            self.api.patch(kind, name, {"status": item["status"]}, namespace=namespace, subresource="status")
        self._there[identity(item)] = item

    def _delete(self, key: tuple[str, str, str]) -> None:
        kind, namespace, name = key
        self.api.delete(kind, name, namespace=namespace, grace=0)
        del self._there[key]

    def _wait_namespaces(self, names: Iterable[str]) -> None:
        # Pods are rejected until the default account exists.
        for name in sorted(names):
            self.api.wait("ServiceAccount", "default", lambda item: item is not None, "to be made", namespace=name)


@contextmanager
def placed(api: KubeClient, cases: Mapping[str, MovedCase], *, wait: bool = True) -> Iterator[Place]:
    """Create the first state of some cases on the API server and delete it at the end.

    With `wait`, it is gone when the next story begins, which may use the same names.
    """
    place = Place(api, cases)
    try:
        place.go_to(0)
        yield place
    finally:
        place.clear(wait=wait)


def stored(gateway: DevGateway) -> Records:
    """Return every record of a gateway without times and private keys, with unordered lists sorted."""
    found: Records = {}
    for kind in ORDER:
        for id_, value in gateway.records(kind).items():
            left_out = (*OF_THE_GATEWAY, "key") if kind == "ssls" else OF_THE_GATEWAY
            body = {key: item for key, item in value.items() if key not in left_out}
            found[f"{kind}/{id_}"] = normal({"problems": {}, "records": {kind: [body]}})["records"][kind][0]
    return found


def fill(gateway: DevGateway, documents: Iterable[RecordsByKind]) -> dict[str, str]:
    """Write records by kind to a gateway; return path → reason for the records that it rejects."""
    everything = list(documents)
    refused: dict[str, str] = {}
    for kind in ORDER:
        for body in (body for each in everything for body in each.get(kind, ())):
            path = f"{kind}/{body['username'] if kind == 'consumers' else body['id']}"
            send = {key: value for key, value in body.items() if (kind, key) != ("plugin_metadata", "id")}
            status, answer = gateway.call("PUT", f"/{path}", send)
            if status not in (200, 201):
                refused[path] = str(answer)
    return refused


def left_by_1_8(place: Place, number: int) -> list[RecordsByKind]:
    """Return the records that controller 1.8 sent up to a state, by case."""
    return [case.recorded(number) for case in place.cases.values()]


def wanted(place: Place, number: int, scratch: DevGateway) -> tuple[Records, dict[str, str]]:
    """Return the records that a gateway accepts and rejects in a state, by writing them to another gateway."""
    scratch.wipe()
    refused = fill(scratch, [case.want(number) for case in place.cases.values()])
    return stored(scratch), refused


def wait_stored(gateway: DevGateway, want: Records, what: str) -> None:
    """Wait until a gateway has exactly these records; the message names the records that differ."""

    def wrong() -> dict[str, Any]:
        got = stored(gateway)
        return {key: (want.get(key), got.get(key)) for key in {*want, *got} if want.get(key) != got.get(key)}

    wait_until(wrong, lambda found: not found, f"{what} (wanted, found)", 60)


def expected_conditions(place: Place, number: int) -> dict[tuple[str, str, str], str]:
    """Return kind, namespace and name → expected status of the condition in a state."""
    found: dict[tuple[str, str, str], str] = {}
    for case in place.cases.values():
        items = {identity(item): item for item in case.objects(number)}
        for name, problems in case.problems(number).items():
            kind, _, path = name.partition(" ")
            namespace, _, own_name = path.rpartition("/")
            if items.get((kind, namespace, own_name), {}).get("apiVersion") == GROUP:
                failing = any(problem.startswith(FAILING) for problem in problems)
                found[kind, namespace, own_name] = "False" if failing else "True"
    return found


def wait_conditions(place: Place, want: Mapping[tuple[str, str, str], str]) -> None:
    """Wait until the condition for each object's current generation has the expected status."""

    def wrong() -> dict[str, Any]:
        return {str(key): got for key in want if (got := _condition(place.api, key)) != want[key]}

    wait_until(wrong, lambda found: not found, "the conditions", 60)


def _condition(api: KubeClient, key: tuple[str, str, str]) -> str:
    kind, namespace, name = key
    item = api.get(kind, name, namespace=namespace)
    found = condition(item)
    if found.get("observedGeneration") != item["metadata"]["generation"]:
        return "none yet"
    return str(found["status"])
