"""Runs credential plugins (`exec` in a kubeconfig).

Only this module uses the `kubernetes` package. It imports the package when a plugin runs: the import takes 0.1 s of
CPU time and 10 MB, which processes without plugin save.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apisix_ingress.errors import ConfigError
from apisix_ingress.kube.client.kubeconfig import Place, Plugin
from apisix_ingress.kube.client.rest_config import Pem
from apisix_ingress.runtime.clock import Clock

EXEC_SECONDS = 30.0
"""Timeout of a credential plugin."""
_EXPIRY_SKEW = 30.0


@dataclass(frozen=True, slots=True)
class PluginCredentials:
    """The response of a credential plugin.

    Attributes:
        token: Empty if the response contains a client certificate instead.
        certificate: None if the response contains a token.
        key: None if the response contains a token.
        expires_at: Monotonic time at which to run the plugin again; None if unknown.
    """

    token: str = field(default="", repr=False)
    certificate: Pem | None = None
    key: Pem | None = None
    expires_at: float | None = None


async def run_plugin(plugin: Plugin, place: Place, clock: Clock) -> PluginCredentials:
    """Run a credential plugin.

    Raises:
        ConfigError: It failed, or did not respond in time with a token or a client certificate.
    """
    where = f"kubeconfig {place.file}: credential plugin {plugin.command!r}"
    try:
        async with asyncio.timeout(EXEC_SECONDS):
            status = await _status(plugin, place, where)
    except TimeoutError:
        raise ConfigError(f"{where}: no response within {EXEC_SECONDS:g} s") from None
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from None
    expires_at = _expiry(status, clock)
    if token := str(status.get("token") or "").strip():
        return PluginCredentials(token, expires_at=expires_at)
    certificate, key = (status.get(name) for name in ("clientCertificateData", "clientKeyData"))
    if not certificate or not key:
        raise ConfigError(f"{where}: the response has neither a token nor a client certificate with its key")
    return PluginCredentials("", Pem(str(certificate).encode()), Pem(str(key).encode()), expires_at)


async def _status(plugin: Plugin, place: Place, where: str) -> Mapping[str, Any]:
    from kubernetes.aio.config.config_exception import ConfigException
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import ConfigNode

    fields = plugin.model_dump(by_alias=True)
    if "/" in plugin.command:
        fields["command"] = str(place.path(plugin.command).absolute())
    try:
        status = await ExecProvider(ConfigNode("exec", fields)).run()
    except ConfigException as error:
        raise ConfigError(f"{where}: {str(error)[:200]}") from None
    except (TypeError, ValueError):  # the response is not a mapping; NUL in an argument
        status = None
    if not isinstance(status, dict):
        raise ConfigError(f"{where}: exec: malformed response: it must be an ExecCredential with a status")
    return status


def _expiry(status: Mapping[str, Any], clock: Clock) -> float | None:
    try:
        left = (datetime.fromisoformat(status["expirationTimestamp"]) - clock.now()).total_seconds()
    except (KeyError, ValueError, TypeError):
        return None
    return clock.monotonic() + max(0.0, left - min(_EXPIRY_SKEW, left / 4))
