"""Reads the API server's address and the client's credentials from the Pod's service account or a kubeconfig.

Nothing here sends a request. A caller keeps the credentials it has until a later read succeeds, because a file may be
missing or half written for a moment. Messages name files and fields, never values.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from apisix_ingress.errors import ConfigError, NoCredentials
from apisix_ingress.kube.client.credential_files import read_file, read_token
from apisix_ingress.kube.client.credential_plugin import run_plugin
from apisix_ingress.kube.client.kubeconfig import Place, Plugin, ResolvedContext, User, read_context
from apisix_ingress.kube.client.rest_config import Pem, RestConfig
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.regular_files import FileVersion, file_version

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ACCOUNT = "the Pod's service account"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server, as of one read.

    Attributes:
        config: Address, TLS settings and proxy; a change needs a new client.
        authorization: Value of the Authorization header; empty for a client certificate or anonymous access.
        expires_at: Monotonic time at which to renew the token; None if unknown.
        costly: Whether a read runs a program; such reads are not repeated without a reason.
        files: All files that were read.
    """

    config: RestConfig
    namespace: str
    authorization: str = field(default="", repr=False)
    expires_at: float | None = None
    costly: bool = False
    files: tuple[Path, ...] = ()

    @property
    def host(self) -> str:
        """Host and port of the API server, for messages."""
        return urlsplit(self.config.host).netloc.rpartition("@")[2]

    def stamp(self) -> tuple[FileVersion, ...]:
        """Return the versions of the files; a file that disappears is a change."""
        return tuple(file_version(path) for path in self.files)


class Credentials(Protocol):
    """A source of credentials."""

    async def load(self) -> Access:
        """Read everything again.

        Raises:
            ConfigError: Something is missing or malformed; the text names the file and the remedy.
        """


def find_credentials(kubeconfig: str, context: str = "", *, clock: Clock, environ: Mapping[str, str]) -> Credentials:
    """Return the first source that exists: `kubeconfig`, the Pod's service account, $KUBECONFIG, ~/.kube/config.

    With a context, the service account is not considered; an empty one is the current context of the kubeconfig.

    Raises:
        NoCredentials: None of them exists.
    """
    if kubeconfig:
        return Kubeconfig(kubeconfig, context, clock=clock)
    if environ.get("KUBERNETES_SERVICE_HOST") and not context:
        return InCluster(environ)
    if listed := environ.get("KUBECONFIG"):
        return Kubeconfig(listed, context, clock=clock)
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if home.is_file():
        return Kubeconfig(str(home), context, clock=clock)
    raise NoCredentials(
        f"kubernetes: no API server credentials: not running in a Pod, KUBECONFIG is not set and {home} does not exist;"
        " pass --kubeconfig FILE or set kubernetes.kubeconfig"
    )


class InCluster:
    """The service account of the Pod."""

    def __init__(self, environ: Mapping[str, str], folder: Path = ACCOUNT_FOLDER) -> None:
        self._environ = environ
        self._folder = folder

    async def load(self) -> Access:
        """Read the token and the CA certificate."""
        return self._load()

    def _load(self) -> Access:
        host, port = self._environ["KUBERNETES_SERVICE_HOST"], self._environ.get("KUBERNETES_SERVICE_PORT") or "443"
        token_file, ca_file, namespace_file = (self._folder / name for name in ("token", "ca.crt", "namespace"))
        url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        namespace = read_file(namespace_file, _ACCOUNT).decode().strip() if namespace_file.is_file() else ""
        return Access(
            RestConfig(url, ca=Pem(read_file(ca_file, _ACCOUNT), ca_file)),
            namespace=namespace or "default",
            authorization=f"Bearer {read_token(token_file)}",
            files=(token_file, ca_file),
        )


class Kubeconfig:
    """A context of a kubeconfig, by default the current one; several files are merged like in kubectl."""

    def __init__(self, paths: str, context: str = "", *, clock: Clock) -> None:
        self._paths = paths
        self._context = context
        self._clock = clock

    async def load(self) -> Access:
        """Read the kubeconfig files and the files they reference, and run the credential plugin if there is one."""
        found = read_context(self._paths, self._context)
        user, place = found.user, found.user_place
        config = _rest_config(found, self._paths)
        files = (*found.files, *config.files)
        access = Access(config, namespace=found.namespace or "default", files=files)
        token = user.token.strip()
        if user.token_file and not token:
            path = place.path(user.token_file)
            return replace(access, authorization=f"Bearer {read_token(path)}", files=(*files, path))
        if user.exec is not None:
            return await self._with_plugin(access, user.exec, place)
        return replace(access, authorization=f"Bearer {token}" if token else _basic(user))

    async def _with_plugin(self, access: Access, plugin: Plugin, place: Place) -> Access:
        got = await run_plugin(plugin, place, self._clock)
        access = replace(access, expires_at=got.expires_at, costly=True)
        if got.token:
            return replace(access, authorization=f"Bearer {got.token}")
        return replace(access, config=replace(access.config, certificate=got.certificate, key=got.key))


def _rest_config(found: ResolvedContext, paths: str) -> RestConfig:
    cluster, host = found.cluster, found.cluster.server.rstrip("/")
    if not _is_http(host):
        raise ConfigError(f"kubeconfig {paths}: the cluster's server must be an http(s) URL")
    if cluster.proxy_url and not _is_http(cluster.proxy_url):
        raise ConfigError(f"{found.cluster_place.field('proxy-url')}: must be an http(s) URL; SOCKS is not supported")
    config = RestConfig(
        host,
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
    )
    if urlsplit(host).scheme == "http":
        return config
    user, at_cluster, at_user = found.user, found.cluster_place, found.user_place
    ca = _pem(at_cluster, "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data)
    certificate = _pem(at_user, "client-certificate", user.client_certificate, user.client_certificate_data)
    key = _pem(at_user, "client-key", user.client_key, user.client_key_data)
    return replace(config, ca=ca, certificate=certificate, key=key)


def _pem(place: Place, name: str, file: str, data: str) -> Pem | None:
    """Return the content of a field with its suffix `-data`, else of the file that the field names."""
    if data:
        try:
            return Pem(base64.b64decode("".join(data.split()), validate=True))
        except ValueError:
            raise ConfigError(f"{place.field(f'{name}-data')}: not valid base64") from None
    if not file:
        return None
    path = place.path(file)
    return Pem(read_file(path, place.field(name)), path)


def _basic(user: User) -> str:
    if not user.username:
        return ""
    return f"Basic {base64.b64encode(f'{user.username}:{user.password}'.encode()).decode()}"


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
