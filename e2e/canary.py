"""Canaries: the secrets that stories use, and the search for them in everything that the controller shows.

A pytest plugin. Remembers the values that a story puts into a Secret, a consumer's credentials or an admin key. After
each story, the logs of all controllers, their pages and arguments, and the Events, statuses and ConfigMaps of the API
server are searched for them. If one is found, the story fails; the message names the secret and the place, never the
value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import crds
from apisix_ingress.model.keys import RECORD_KINDS
from e2e.cluster.client import KubeApiError, KubeClient, Manifest
from e2e.controller import Controller, Gateway

SHORTEST = 8
"""Shorter values are not used as canaries: too many unrelated texts contain them."""

PAGES = (
    *("/metrics", "/healthz", "/readyz", "/apisix/healthz"),
    *("/status", "/status/problems"),
    *(f"/status/api/records?body=yes&kind={kind}" for kind in RECORD_KINDS),
)
_PUBLIC = frozenset({"username", "user_dn", "tls.crt", "cert", "ca.crt", "public_key"})
_CREDENTIALS = frozenset({"key", "password", "secret", "private_key", "secret_key", "access_key", "passwd", "token"})
_PEM_BODY = 48


class Canaries:
    """Values that must not appear anywhere, each with its origin."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def plant(self, value: str, what: str) -> None:
        """Remember a secret; ignore values that are too short, and certificates."""
        if len(value) < SHORTEST or ("BEGIN CERTIFICATE" in value and "PRIVATE KEY" not in value):
            return
        for form in _forms(value):
            self._forms.setdefault(form, what)

    def plant_from(self, manifest: Manifest) -> None:
        """Remember the secrets of a Secret or ApisixConsumer."""
        name = f"{manifest['kind']} {(manifest.get('metadata') or {}).get('name', '')}"
        if manifest["kind"] == "Secret":
            texts = {
                key: base64.b64decode(value).decode("latin-1") for key, value in (manifest.get("data") or {}).items()
            }
            for key, value in (texts | (manifest.get("stringData") or {})).items():
                if key not in _PUBLIC:
                    self.plant(str(value), f"{key} of {name}")
        elif manifest["kind"] == "ApisixConsumer":
            for key, value in _leaves(manifest.get("spec") or {}):
                if key in _CREDENTIALS:
                    self.plant(str(value), f"{key} of {name}")

    def leaks(self, text: str) -> set[str]:
        """Return the secrets that a text contains."""
        return {what for form, what in self._forms.items() if form in text}


def _forms(value: str) -> Iterator[str]:
    """Yield the forms of a secret: plain, base64, JSON, URL-encoded; for a private key, two lines of its body."""
    if "PRIVATE KEY" in value:
        lines = [line for line in value.splitlines() if len(line) >= _PEM_BODY and "-----" not in line]
        yield from lines[1:3] or lines
        return
    yield from {value, base64.b64encode(value.encode()).decode(), json.dumps(value)[1:-1], quote(value, safe="")}


def _leaves(node: object, name: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(node, Mapping):
        for key, each in node.items():
            yield from _leaves(each, str(key))
    elif isinstance(node, list):
        for each in node:
            yield from _leaves(each, name)
    else:
        yield name, node


class Search:
    """The canaries of one session, and the places that are searched for them."""

    def __init__(self) -> None:
        self.canaries = Canaries()
        self._controllers: list[Controller] = []
        self._read: dict[Path, int] = {}

    def follow(self, controller: Controller, gateways: Mapping[str, Gateway]) -> None:
        """Include the output of this controller in the search, and the keys of its gateways in the canaries."""
        self._controllers.append(controller)
        for name, gateway in gateways.items():
            self.canaries.plant(gateway.admin_key, f"admin key of cluster {name}")

    def leaks(self, api: KubeClient | None = None) -> list[str]:
        """Return a line for each secret that was leaked; logs are searched from where the last search ended."""
        places = (*self._of_controllers(), *(_of_api(api) if api is not None else ()))
        return sorted({f"{what} in {place}" for place, text in places for what in self.canaries.leaks(text)})

    def _of_controllers(self) -> Iterator[tuple[str, str]]:
        for controller in self._controllers:
            yield f"the log of {controller.name}", self._rest_of(controller.process.log)
            pid = controller.process.pid
            if pid is None:
                continue
            yield f"the arguments of {controller.name}", Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
            for page in PAGES:
                yield f"{page} of {controller.name}", controller.probe(page)[1]

    def _rest_of(self, log: Path) -> str:
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(self._read.get(log, 0))
            rest = file.read()
        # The last line may be incomplete; the next search reads it again.
        self._read[log] = self._read.get(log, 0) + rest.rfind(b"\n") + 1
        return rest.decode(errors="replace")


def _of_api(api: KubeClient) -> Iterator[tuple[str, str]]:
    """Yield what the API server shows to users without permission to read Secrets."""
    for kind in ("v1/Event", "ConfigMap"):
        for item in api.objects(kind, namespace=""):
            yield _at(kind, item), json.dumps(item, ensure_ascii=False)
    for kind in ("Ingress", *crds.KINDS):
        try:
            items = api.objects(kind, namespace="")
        except KubeApiError as error:
            if error.status != 404:  # a story may do without the CRDs
                raise
            continue
        for item in items:
            yield f"the status of {_at(kind, item)}", json.dumps(item.get("status"), ensure_ascii=False)


def _at(kind: str, item: Manifest) -> str:
    metadata = item["metadata"]
    return f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"


@contextmanager
def planted(search: Search) -> Iterator[None]:
    """Register every Secret and consumer sent to the API server, and every controller created."""
    send, make = KubeClient.request, Controller.__init__

    def request(self: KubeClient, method: str, path: str, *, body: Any = None, **rest: Any) -> Manifest:
        if isinstance(body, dict):
            kind = body.get("kind") or ("Secret" if "/secrets/" in path else "")
            if kind in ("Secret", "ApisixConsumer"):
                search.canaries.plant_from({**body, "kind": kind})
        return send(self, method, path, body=body, **rest)

    def init(self: Controller, *args: Any, gateways: Mapping[str, Gateway], **rest: Any) -> None:
        make(self, *args, gateways=gateways, **rest)
        search.follow(self, gateways)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KubeClient, "request", request)
        patch.setattr(Controller, "__init__", init)
        yield


@pytest.fixture(scope="session")
def canary_search() -> Iterator[Search]:
    """The search of the session; its teardown searches the remaining output."""
    search = Search()
    with planted(search):
        yield search
    if leaks := search.leaks():
        pytest.fail(f"secrets are shown: {'; '.join(leaks)}", pytrace=False)


@pytest.fixture(autouse=True)
def _canaries(canary_search: Search) -> None:
    """Plant canaries in every story."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Search while the objects of the story exist; fail after they have been removed."""
    given: Mapping[str, Any] = getattr(item, "funcargs", {})
    search, api = given.get("canary_search"), given.get("api")
    leaks: list[str] = []
    trouble: Exception | None = None
    try:
        leaks = search.leaks(api) if search is not None else []
    except Exception as error:  # report any error only after the objects of the story have been removed
        trouble = error
    yield
    if trouble is not None:
        raise trouble
    if leaks:
        pytest.fail(f"secrets are shown: {'; '.join(leaks)}", pytrace=False)
