"""A small synchronous API client for stories: raw JSON in and out, server-side apply, bounded waits.

It works against any cluster that a kubeconfig names. The product has its own client; it is not used here, so that
stories do not check the product with its own code.
"""

import base64
import json
import re
import secrets
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import yaml

# A manifest is JSON whose shape the API server checks; stories index into it freely.
Manifest = dict[str, Any]
Source = Manifest | Sequence[Manifest] | str | Path
T = TypeVar("T")

FIELD_MANAGER = "e2e"
POLL_INTERVAL = 0.03
WAIT_TIMEOUT = 30.0
_WARNING = re.compile(r'299 \S+ ("(?:[^"\\]|\\.)*")')
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class KubeApiError(Exception):
    """The API server rejected a request; `status` is the HTTP status, the message is the server's own."""

    def __init__(self, what: str, status: int, message: str) -> None:
        super().__init__(f"{what}: HTTP {status}: {message}")
        self.status = status


class WaitError(AssertionError):
    """A condition was not met in time; the message contains the last state."""


@dataclass(frozen=True, slots=True)
class Resource:
    """The location of objects of one kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the URL path of a collection, or of one object in it."""
        prefix = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{prefix}{scope}/{self.plural}" + (f"/{name}" if name else "")


class KubeClient:
    """Talks to one API server as one user. Safe to use from several threads."""

    def __init__(
        self, url: str, *, tls: ssl.SSLContext, token: str = "", namespace: str = "default", timeout: float = 10.0
    ) -> None:
        """Prepare a client.

        Args:
            url: of the API server.
            tls: verifies the server and, for certificate users, holds the client's certificate.
            token: a bearer token; empty for certificate users.
            namespace: used where a call or a manifest names none.
            timeout: of each request, in seconds.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.namespace_default = namespace
        self._http = httpx.Client(base_url=url, verify=tls, headers=headers, timeout=timeout, trust_env=False)
        self._resources: dict[str, Resource] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path, *, token: str | None = None) -> Self:
        """Make a client for the current context of a kubeconfig, or for another token at the same server."""
        config = yaml.safe_load(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"] if token is None else {"token": token}
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in user:
            _load_client_certificate(tls, user)
        namespace = context.get("namespace", "default")
        return cls(cluster["server"], tls=tls, token=user.get("token", ""), namespace=namespace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # -- objects ---------------------------------------------------------------------------------------------------

    def apply(
        self, source: Source, *, namespace: str | None = None, strict: bool = False, rehearse: bool = False
    ) -> list[Manifest]:
        """Apply manifests server-side, in their order, and return the resulting objects.

        For a CustomResourceDefinition, wait until its kind can be used.

        Args:
            source: a manifest, several, YAML text, or the path of a YAML file or a folder of such files.
            namespace: for manifests that name none.
            strict: a field that the API server does not know is an error.
            rehearse: validate them, including admission, without storing them.
        """
        applied = []
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        query |= {"fieldValidation": "Strict"} if strict else {}
        query |= {"dryRun": "All"} if rehearse else {}
        for manifest in load_manifests(source):
            path = f"{self._collection(manifest, namespace)}/{manifest['metadata']['name']}"
            headers = {"Content-Type": "application/apply-patch+yaml"}
            got = self.request("PATCH", path, body=manifest, params=query, headers=headers)
            if got["kind"] == "CustomResourceDefinition" and not rehearse:
                got = self._wait_established(got["metadata"]["name"])
            applied.append(got)
        return applied

    def create(self, manifest: Manifest, *, namespace: str | None = None) -> Manifest:
        """Create one object; raises KubeApiError with status 409 when it exists."""
        return self.request("POST", self._collection(manifest, namespace), body=manifest)

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest:
        """Return an object; raises KubeApiError with status 404 if it does not exist."""
        return self.request("GET", self._path(kind, namespace, name))

    def find(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest | None:
        """Return an object, or None if it does not exist."""
        try:
            return self.get(kind, name, namespace=namespace)
        except KubeApiError as e:
            if e.status == 404:
                return None
            raise

    def objects(self, kind: str, *, namespace: str | None = None, labels: str = "", fields: str = "") -> list[Manifest]:
        """Return the objects of a kind in one namespace ("" for all), narrowed by label and field selectors."""
        params = {"labelSelector": labels} if labels else {}
        params |= {"fieldSelector": fields} if fields else {}
        got = self.request("GET", self._path(kind, namespace), params=params)
        return list(got["items"])

    def patch(
        self, kind: str, name: str, body: Manifest, *, namespace: str | None = None, subresource: str = ""
    ) -> Manifest:
        """Merge `body` into an object or one of its subresources; a null removes a field (RFC 7386)."""
        path = self._path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", path, body=body, headers={"Content-Type": "application/merge-patch+json"})

    def delete(self, kind: str, name: str, *, namespace: str | None = None, grace: int | None = None) -> None:
        """Delete an object; a missing object is not an error.

        Args:
            kind: as in `get`.
            name: as in `get`.
            namespace: as in `get`.
            grace: gracePeriodSeconds; 0 removes a pod immediately, None uses the object's own value.
        """
        params = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        try:
            self.request("DELETE", self._path(kind, namespace, name), params=params)
        except KubeApiError as e:
            if e.status != 404:
                raise

    def events(self, about: str, *, namespace: str | None = None) -> list[Manifest]:
        """Return the Events about the object of that name, oldest first."""
        found = self.objects("v1/Event", namespace=namespace, fields=f"involvedObject.name={about}")
        return sorted(found, key=lambda event: str(event["metadata"]["creationTimestamp"]))

    # -- waiting ---------------------------------------------------------------------------------------------------

    def wait(
        self,
        kind: str,
        name: str,
        until: Callable[[Manifest | None], bool],
        what: str,
        *,
        namespace: str | None = None,
        timeout: float = WAIT_TIMEOUT,
    ) -> Manifest:
        """Read an object until `until` holds for it (None: it does not exist) and return it ({} if gone).

        Raises:
            WaitError: after `timeout` seconds, showing the object as it was last.
        """
        got = wait_until(lambda: self.find(kind, name, namespace=namespace), until, f"{kind} {name}: {what}", timeout)
        return got or {}

    # -- namespaces and accounts -----------------------------------------------------------------------------------

    @contextmanager
    def namespace(self, prefix: str = "e2e", labels: Mapping[str, str] | None = None) -> Iterator[str]:
        """Create a namespace with a unique name, ready for pods; it is deleted at the end without waiting."""
        name = f"{prefix}-{secrets.token_hex(3)}"
        metadata = {"name": name, "labels": dict(labels or {})}
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            # Pods are rejected until the default account exists.
            self.wait("ServiceAccount", "default", lambda o: o is not None, "to be made", namespace=name)
            yield name
        finally:
            self.delete("Namespace", name)

    def account_token(self, account: str, *, namespace: str | None = None, lifetime: int = 3600) -> str:
        """Return a token for a service account from the TokenRequest API.

        Args:
            account: its name; the account must exist.
            namespace: of the account.
            lifetime: in seconds, at least 600.
        """
        path = self._path("ServiceAccount", namespace, account) + "/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime},
        }
        return str(self.request("POST", path, body=body)["status"]["token"])

    # -- requests --------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        warnings: list[str] | None = None,
    ) -> Manifest:
        """Send one request and return the decoded response; raises KubeApiError when the status is not 2xx.

        Warnings of the API server are added to `warnings`.
        """
        content = None if body is None else json.dumps(body)
        send = {"Content-Type": "application/json"} | dict(headers or {})
        reply = self._http.request(method, path, content=content, params=params, headers=send)
        if warnings is not None:
            warnings += [json.loads(text) for text in _WARNING.findall(reply.headers.get("Warning", ""))]
        if not reply.is_success:
            raise KubeApiError(f"{method} {path}", reply.status_code, _message(reply))
        got: Manifest = reply.json()
        return got

    def resource(self, kind: str) -> Resource:
        """Return the location of a kind.

        Args:
            kind: `Pod`, or with the version `networking.k8s.io/v1/Ingress` where the name alone is not clear.
        """
        if kind not in self._resources:
            # The kind may be newer than the last discovery.
            self._resources = self._discover()
        if kind not in self._resources:
            raise KubeApiError(f"kind {kind}", 404, "the API server does not know it")
        return self._resources[kind]

    def _discover(self) -> dict[str, Resource]:
        found: dict[str, Resource] = {}
        for path in ("/api", "/apis"):
            for group in self.request("GET", path, headers={"Accept": DISCOVERY})["items"]:
                group_name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    api_version = f"{group_name}/{version['version']}" if group_name else version["version"]
                    for each in version.get("resources", []):
                        resource = _resource(api_version, each)
                        found.setdefault(f"{api_version}/{resource.kind}", resource)
                        # The preferred version of a group comes first, and the core group before all others.
                        found.setdefault(resource.kind, resource)
        return found

    def _path(self, kind: str, namespace: str | None, name: str = "") -> str:
        return self.resource(kind).path(self.namespace_default if namespace is None else namespace, name)

    def _collection(self, manifest: Manifest, namespace: str | None) -> str:
        resource = self.resource(f"{manifest['apiVersion']}/{manifest['kind']}")
        return resource.path(manifest["metadata"].get("namespace") or namespace or self.namespace_default)

    def _wait_established(self, name: str) -> Manifest:
        def established(crd: Manifest | None) -> bool:
            # The list is null, not absent, until the first condition is written.
            conditions = (crd or {}).get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        crd = self.wait("CustomResourceDefinition", name, established, "to be established")
        spec = crd["spec"]
        served = {f"{spec['group']}/{v['name']}/{spec['names']['kind']}" for v in spec["versions"] if v["served"]}
        wait_until(self._discover, lambda found: served <= found.keys(), f"{served} to be served")
        return crd


def wait_until(read: Callable[[], T], until: Callable[[T], bool], what: str, timeout: float = WAIT_TIMEOUT) -> T:
    """Call `read` until `until` is true for its result, and return the result.

    Raises:
        WaitError: after `timeout` seconds, with `what` and the last value read.
    """
    deadline = time.monotonic() + timeout
    while not until(got := read()):
        if time.monotonic() > deadline:
            raise WaitError(f"waited {timeout:.0f} s for {what}\nlast seen: {_shown(got)}")
        time.sleep(POLL_INTERVAL)  # other processes make it true, and not all of them support a watch
    return got


def load_manifests(source: Source) -> list[Manifest]:
    """Return the manifests in a dict, a list, YAML text, a YAML file, or the YAML files of a folder (by name)."""
    if isinstance(source, Path):
        files = sorted([*source.rglob("*.yaml"), *source.rglob("*.yml")]) if source.is_dir() else [source]
        return [manifest for file in files for manifest in load_manifests(file.read_text())]
    if isinstance(source, str):
        return load_manifests([document for document in yaml.safe_load_all(source) if document])
    if isinstance(source, dict):
        return load_manifests(source["items"]) if source.get("kind") == "List" else [source]
    return [manifest for each in source for manifest in load_manifests(each)]


def _resource(api_version: str, discovered: Mapping[str, Any]) -> Resource:
    return Resource(
        api_version=api_version,
        kind=discovered["responseKind"]["kind"],
        plural=discovered["resource"],
        namespaced=discovered["scope"] == "Namespaced",
    )


def _named(entries: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _load_client_certificate(tls: ssl.SSLContext, user: Mapping[str, str]) -> None:
    # The ssl module reads certificates from files only.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]))
        file.flush()
        tls.load_cert_chain(file.name)


def _message(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["message"])
    except (ValueError, KeyError, TypeError):
        return reply.text[:500]


def _shown(value: object) -> str:
    def trimmed(node: object) -> object:
        if isinstance(node, dict):
            return {key: trimmed(each) for key, each in node.items() if key != "managedFields"}
        return [trimmed(each) for each in node] if isinstance(node, list) else node

    return json.dumps(trimmed(value), indent=1, default=repr)
