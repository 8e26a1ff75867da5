"""Retries of single requests: of a request that was cut off, and of a list that the gateway failed to return.

All longer retries are up to the callers: the backoff of a record, and the next audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from apisix_ingress.errors import GatewayUnavailable

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

CUT_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""How a request fails on an idle connection that the gateway is just closing (contract: fact 22)."""

RESENDS = 2
"""How often a request is repeated: the next idle connection may be stale as well."""

RELISTS, RELIST_PAUSE = 3, 0.3
"""Attempts to read a list, and the maximum pause between them in seconds; the other kinds are not listed again."""


def resending() -> AsyncRetrying:
    """Return the policy for repeating a GET, PUT or DELETE that was cut off; all three are idempotent."""
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random  # rarely needed

    return AsyncRetrying(
        retry=retry_if_exception_type(CUT_OFF),
        stop=stop_after_attempt(RESENDS),
        wait=wait_random(0, 0.05),
        reraise=True,
    )


def relisting() -> AsyncRetrying:
    """Return the policy for repeating a list to which a gateway replied with 5xx and no Retry-After."""
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random  # rarely needed

    return AsyncRetrying(
        retry=retry_if_exception(has_failed),
        stop=stop_after_attempt(RELISTS - 1),
        wait=wait_random(0, RELIST_PAUSE),
        reraise=True,
    )


def has_failed(error: BaseException) -> bool:
    """Return whether a gateway replied with an error of its own that may pass within a moment."""
    return isinstance(error, GatewayUnavailable) and (error.status or 0) >= 500 and error.retry_after is None
