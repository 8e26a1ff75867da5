"""Where the API server is and who we are there: in-cluster files or a kubeconfig, read again when they change.

Nothing here sends a request. A file that is missing or half written for a moment is no reason to forget credentials
that worked: whoever holds them keeps them until a later read succeeds. Messages name files and fields, never values.
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
"""Bound of one run of a credential plugin."""
_EXPIRY_SKEW = 30.0
_LARGEST = 10 * 2**20
_ANONYMOUS = "(anonymous)"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server, as of one read.

    Attributes:
        configuration: A `kubernetes.aio.client.Configuration`, without token.
        authorization: Value of the Authorization header; empty: client certificate or anonymous.
        tls: Contents of the files that make the TLS context; a change needs a new client.
        expires_at: Monotonic time at which the token should be renewed, None when unknown.
        costly: Whether a read runs a program, so that it is not repeated just in case.
        files: Every file that was read.
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
        """Return the versions of the files; a missing file counts as a change."""
        return tuple(file_version(path) for path in self.files)


class Credentials(Protocol):
    """A place that credentials come from."""

    async def load(self) -> Access:
        """Read everything anew.

        Raises:
            ConfigError: something is missing or malformed; the text names the file and the remedy.
        """


def find_credentials(kubeconfig: str, *, clock: Clock, environ: Mapping[str, str]) -> Credentials:
    """Choose the source: `kubeconfig` if given, else the Pod's account, else $KUBECONFIG, else ~/.kube/config.

    Raises:
        ConfigError: there is none.
    """
    if kubeconfig:
        return Kubeconfig(kubeconfig, clock=clock)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return InCluster(environ)
    if listed := environ.get("KUBECONFIG"):
        return Kubeconfig(listed, clock=clock)
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if home.is_file():
        return Kubeconfig(str(home), clock=clock)
    raise ConfigError(
        f"kubernetes: no way to the API server: this is no Pod, KUBECONFIG is not set and {home} does not exist; "
        "give --kubeconfig FILE or set kubernetes.kubeconfig"
    )


class InCluster:
    """The service account of the Pod."""

    def __init__(self, environ: Mapping[str, str], folder: Path = ACCOUNT_FOLDER) -> None:
        self._environ = environ
        self._folder = folder

    async def load(self) -> Access:
        """Read the account's token and CA."""
        return self._load()

    def _load(self) -> Access:
        host, port = self._environ["KUBERNETES_SERVICE_HOST"], self._environ.get("KUBERNETES_SERVICE_PORT") or "443"
        token_file, ca_file, namespace_file = (self._folder / name for name in ("token", "ca.crt", "namespace"))
        configuration = Configuration(host=f"https://{f'[{host}]' if ':' in host else host}:{port}")
        configuration.ssl_ca_cert = str(ca_file)
        namespace = _read(namespace_file, "the Pod's account").decode().strip() if namespace_file.is_file() else ""
        return Access(
            configuration,
            namespace=namespace or "default",
            authorization=f"Bearer {_read_token(token_file)}",
            tls=(_read(ca_file, "the Pod's account"),),
            files=(token_file, ca_file),
        )


class Kubeconfig:
    """The current context of a kubeconfig; several files are merged as kubectl does."""

    def __init__(self, paths: str, *, clock: Clock) -> None:
        self._paths = paths
        self._clock = clock

    async def load(self) -> Access:
        """Read the files, the ones that they name, and run the credential plugin if there is one."""
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
        except (OSError, RuntimeError) as error:  # the second: `~` of a user that nobody knows
            reason = error.strerror if isinstance(error, OSError) else "its folder is that of an unknown user"
            raise ConfigError(f"kubeconfig {self._paths}: {reason}; give the right path with --kubeconfig") from None
        if not found:
            raise ConfigError(f"kubeconfig {self._paths}: no such file; give the right path with --kubeconfig")
        for path in found:
            _check_kubeconfig(path)
        try:
            return found, KubeConfigMerger(os.pathsep.join(map(str, found))).config
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"kubeconfig {self._paths}: not a kubeconfig ({type(error).__name__})") from None

    async def _configuration(self, merged: Any) -> Any:
        configuration = Configuration(host="")
        try:
            await KubeConfigLoader(merged).load_and_set(configuration)
        except ConfigException as error:
            raise ConfigError(f"kubeconfig {self._paths}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            raise ConfigError(f"kubeconfig {self._paths}: can't be used: {reason}") from None
        if urlsplit(configuration.host).scheme not in ("http", "https"):
            raise ConfigError(f"kubeconfig {self._paths}: the cluster's server must be an http(s) URL")
        return configuration

    async def _run(self, plugin: Any, configuration: Any) -> tuple[str, float | None]:
        """Run the credential plugin; it answers with a token or a client certificate."""
        where = f"kubeconfig {self._paths}: credential plugin {plugin.get('command')!r}"
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                status = await ExecProvider(ConfigNode("exec", plugin)).run()
        except (ConfigException, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)[:200]
            raise ConfigError(f"{where}: {reason}") from None
        except TimeoutError:
            raise ConfigError(f"{where}: no answer within {EXEC_SECONDS:g} s") from None
        if token := str(status.get("token") or "").strip():
            return f"Bearer {token}", self._expiry(status)
        if not status.get("clientCertificateData") or not status.get("clientKeyData"):
            raise ConfigError(f"{where}: the answer holds neither a token nor a client certificate with its key")
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
    except (yaml.YAMLError, RecursionError, ValueError):  # nested without end; no such date
        raise ConfigError(f"kubeconfig {path}: not YAML") from None
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: not a kubeconfig: the top level must be a mapping")


def _user_of(merged: Any, paths: str) -> dict[str, Any]:
    """Return the user of the current context, as a mapping that is part of `merged`; add an empty one if absent."""
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
        raise ConfigError(f"kubeconfig {paths}: the current context names the user {name!r}, which is not there")
    # The package can't read a context without user: it gets an empty one.
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
    """Take the token file out of a user: it is read here, since the package keeps the first token for ever."""
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
        raise ConfigError(f"{where}: {path}: larger than {_LARGEST // 2**20} MB: is it the right file?")
    return content


def _read_token(path: Path) -> str:
    token = _read(path, "token file").decode("ascii", "replace").strip()
    if not token or not token.isprintable() or any(character.isspace() for character in token):
        raise ConfigError(f"token file {path}: must hold one token and nothing else")
    return token
