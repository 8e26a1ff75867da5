"""Reads the API server's address and the client's credentials from the Pod's service account or a kubeconfig.

Nothing here sends a request. A caller keeps the credentials it has until a later read succeeds, because a file may be
missing or half written for a moment. Messages name files and fields, never values.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.exec_provider import ExecProvider
from kubernetes.aio.config.kube_config import ConfigNode, FileOrData, KubeConfigLoader, KubeConfigMerger

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.manifests.paths import exists
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.regular_files import FileVersion, file_version, read_regular

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_SECONDS = 30.0
"""Timeout of a credential plugin."""
_EXPIRY_SKEW = 30.0
_LARGEST = 10 * 2**20
_ANONYMOUS = "(anonymous)"
_ACCOUNT = "the Pod's service account"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server, as of one read.

    Attributes:
        configuration: A `kubernetes.aio.client.Configuration`, without token.
        authorization: Value of the Authorization header; empty for a client certificate or anonymous access.
        tls: Contents of the files of the TLS context; a change needs a new client.
        expires_at: Monotonic time at which to renew the token; None if unknown.
        costly: Whether a read runs a program; such reads are not repeated without a reason.
        files: All files that were read.
    """

    configuration: Any = field(repr=False)
    namespace: str
    authorization: str = field(default="", repr=False)
    tls: tuple[bytes, ...] = field(default=(), repr=False)
    expires_at: float | None = None
    costly: bool = False
    files: tuple[Path, ...] = ()

    @property
    def host(self) -> str:
        """Host and port of the API server, for messages."""
        return urlsplit(str(self.configuration.host)).netloc.rpartition("@")[2]

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
        ConfigError: None of them exists.
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
    raise ConfigError(
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
        configuration = Configuration(host=f"https://{f'[{host}]' if ':' in host else host}:{port}")
        configuration.ssl_ca_cert = str(ca_file)
        namespace = _read(namespace_file, _ACCOUNT).decode().strip() if namespace_file.is_file() else ""
        return Access(
            configuration,
            namespace=namespace or "default",
            authorization=f"Bearer {_read_token(token_file)}",
            tls=(_read(ca_file, _ACCOUNT),),
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
        files, merged = self._merged()
        user = _user_of(merged, self._paths)
        plugin = user.pop("exec", None)
        token_file = _token_file(user, files[0])
        configuration = await self._configuration(merged)
        authorization = str(configuration.api_key.pop("BearerToken", "")).strip()
        expires_at = None
        if token_file is not None:
            authorization = f"Bearer {_read_token(token_file)}"
        elif plugin:
            authorization, expires_at = await self._run(plugin, configuration)
        named = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        tls_files = tuple(Path(name) for name in named if name)
        return Access(
            configuration,
            namespace=_namespace_of(merged),
            authorization=authorization,
            tls=tuple(_read(path, self._paths) for path in tls_files),
            expires_at=expires_at,
            costly=plugin is not None,
            files=(*files, *tls_files, *((token_file,) if token_file else ())),
        )

    def _merged(self) -> tuple[tuple[Path, ...], Any]:
        try:
            files = tuple(Path(name).expanduser() for name in self._paths.split(os.pathsep) if name)
            found = tuple(path for path in files if exists(path))
        except (OSError, RuntimeError) as error:  # RuntimeError: `~` of an unknown user
            reason = error.strerror if isinstance(error, OSError) else "unknown user in the path"
            raise ConfigError(f"kubeconfig {self._paths}: {reason}; set the path with --kubeconfig") from None
        if not found:
            raise ConfigError(f"kubeconfig {self._paths}: no such file; set the path with --kubeconfig")
        for path in found:
            _check_kubeconfig(path)
        try:
            merged = KubeConfigMerger(os.pathsep.join(map(str, found))).config
            self._select(merged)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"kubeconfig {self._paths}: not a kubeconfig ({type(error).__name__})") from None
        return found, merged

    def _select(self, merged: Any) -> None:
        """Make the requested context the current one."""
        if not self._context:
            return
        names = [str(node.value.get("name")) for node in merged.value["contexts"]]
        if self._context not in names:
            raise ConfigError(
                f"kubeconfig {self._paths}: no context {self._context!r}; it has: {', '.join(names) or 'none'}"
            )
        merged.value["current-context"] = self._context

    async def _configuration(self, merged: Any) -> Any:
        configuration = Configuration(host="")
        try:
            await KubeConfigLoader(merged).load_and_set(configuration)
        except ConfigException as error:
            raise ConfigError(f"kubeconfig {self._paths}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            raise ConfigError(f"kubeconfig {self._paths}: cannot be used: {reason}") from None
        if urlsplit(configuration.host).scheme not in ("http", "https"):
            raise ConfigError(f"kubeconfig {self._paths}: the cluster's server must be an http(s) URL")
        return configuration

    async def _run(self, plugin: Any, configuration: Any) -> tuple[str, float | None]:
        """Run the credential plugin, which returns a token or a client certificate."""
        where = f"kubeconfig {self._paths}: credential plugin {plugin.get('command')!r}"
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                status = await ExecProvider(ConfigNode("exec", plugin)).run()
        except (ConfigException, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)[:200]
            raise ConfigError(f"{where}: {reason}") from None
        except TimeoutError:
            raise ConfigError(f"{where}: no response within {EXEC_SECONDS:g} s") from None
        if token := str(status.get("token") or "").strip():
            return f"Bearer {token}", self._expiry(status)
        if not status.get("clientCertificateData") or not status.get("clientKeyData"):
            raise ConfigError(f"{where}: the response has neither a token nor a client certificate with its key")
        for name, attribute in (("clientCertificateData", "cert_file"), ("clientKeyData", "key_file")):
            setattr(configuration, attribute, FileOrData(status, "", name, base64_file_content=False).as_file())
        return "", self._expiry(status)

    def _expiry(self, status: Mapping[str, Any]) -> float | None:
        try:
            left = (datetime.fromisoformat(status["expirationTimestamp"]) - self._clock.now()).total_seconds()
        except (KeyError, ValueError, TypeError):
            return None
        return self._clock.monotonic() + max(0.0, left - min(_EXPIRY_SKEW, left / 4))


def _check_kubeconfig(path: Path) -> None:
    try:
        content = yaml.safe_load(_read(path, f"kubeconfig {path}"))
    except (yaml.YAMLError, RecursionError, ValueError):  # the last two: nested too deeply, invalid date
        raise ConfigError(f"kubeconfig {path}: not valid YAML") from None
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: the top level must be a mapping")


def _user_of(merged: Any, paths: str) -> dict[str, Any]:
    """Return the current context's user, a mapping inside `merged`; add an empty one if the context has no user."""
    context = _context_of(merged)
    name = context.get("user")
    for node in merged.value["users"]:
        if node.value.get("name") == name and isinstance(node.value.get("user"), dict):
            user: dict[str, Any] = node.value["user"]
            if "auth-provider" in user:
                raise ConfigError(
                    f"kubeconfig {paths}: auth-provider is not supported: use a token, a client certificate or exec"
                )
            return user
    if name:
        raise ConfigError(f"kubeconfig {paths}: the current context uses the user {name!r}, which does not exist")
    # The kubernetes package cannot read a context without a user, so add an empty user.
    anonymous: dict[str, Any] = {}
    merged.value["users"].append(ConfigNode(_ANONYMOUS, {"name": _ANONYMOUS, "user": anonymous}, merged.path))
    context["user"] = _ANONYMOUS
    return anonymous


def _context_of(merged: Any) -> dict[str, Any]:
    current = merged.value.get("current-context")
    for node in merged.value["contexts"]:
        if node.value.get("name") == current:
            return node.value.get("context") or {}
    return {}


def _namespace_of(merged: Any) -> str:
    return _context_of(merged).get("namespace") or "default"


def _token_file(user: dict[str, Any], kubeconfig: Path) -> Path | None:
    """Remove the token file from a user and return it: the kubernetes package would keep the first token forever."""
    name = user.pop("tokenFile", None)
    if not name or user.get("token"):
        return None
    return Path(os.path.normpath(kubeconfig.parent / name))


def _read(path: Path, where: str) -> bytes:
    try:
        content = read_regular(path, _LARGEST)
    except OSError as error:
        raise ConfigError(f"{where}: {path}: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"{where}: {path}: larger than {_LARGEST // 2**20} MB: check the path")
    return content


def _read_token(path: Path) -> str:
    token = _read(path, "token file").decode("ascii", "replace").strip()
    if not token or not token.isprintable() or any(character.isspace() for character in token):
        raise ConfigError(f"token file {path}: must contain one token and nothing else")
    return token
