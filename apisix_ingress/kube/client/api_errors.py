"""The errors of requests to the API server: from its responses, and from failures of the transport."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from apisix_ingress.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeGone,
    KubeNotFound,
    KubeUnavailable,
)
from apisix_ingress.kube.client.requests import TooLarge
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.connection_errors import unreachable

_LONGEST_REASON = 500


def error_of(status: int, content: bytes, where: str, retry_after: str | None = None) -> KubeError:
    """Return the error for a response: the status selects its class; its text is the API server's message."""
    details = _status_object(content)
    message = f"{where}: {status}: {str(details.get('message') or 'no reason given')[:_LONGEST_REASON]}"
    if 300 <= status < 400:
        return KubeUnavailable(
            f"{where}: {status}: an API server never redirects: check the kubeconfig's server", status=status
        )
    if status in (401, 403):
        return KubeForbidden(message, status=status)
    if status in (408, 429) or status >= 500:
        return KubeUnavailable(message, status=status, retry_after=_retry_after(details, retry_after))
    classes: dict[int, type[KubeError]] = {404: KubeNotFound, 409: KubeConflict, 410: KubeGone}
    return classes.get(status, KubeError)(message, status=status)


def _status_object(content: bytes) -> JsonObject:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after(status: Mapping[str, Any], header: str | None) -> float | None:
    details = status.get("details")
    asked = header or (details.get("retryAfterSeconds") if isinstance(details, dict) else None)
    try:
        return max(0.0, float(asked)) if asked is not None else None
    except (TypeError, ValueError):  # an HTTP date, or malformed
        return None


def explain(error: Exception) -> str:
    """Return why a request got no response."""
    if reason := unreachable(error, "the CA certificate of the credentials"):
        return reason
    match error:
        case TooLarge():
            return str(error)
        case ssl.SSLCertVerificationError():
            return f"the server's certificate is not valid ({error.verify_message}): check the CA certificate"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "TLS failed: check the URL's scheme and the client certificate"
        case TimeoutError():
            return "no response in time"
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return "the connection was closed"
        case aiohttp.InvalidURL():
            return "the server's URL is not valid"
        case _:
            return f"the request failed ({type(error).__name__})"
