"""The retries within one attempt: of a request that was cut off, and of a list that the gateway failed to give.

Whoever waits longer than that waits in the backoff of the record, or for the next comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from apisix_ingress.errors import GatewayUnavailable

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

CUT_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""How a request fails on a kept connection that the gateway closes at that moment (contract: fact 22)."""

RESENDS = 2
"""So often a request is sent again: the next kept connection may be stale as well."""

RELISTS, RELIST_PAUSE = 3, 0.3
"""So often a list is asked for, and seconds between two times at most: one of many kinds must not cost the others."""


def resending() -> AsyncRetrying:
    """Return the policy for sending a GET, PUT or DELETE again once it was cut off; all three are idempotent."""
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random  # rarely needed

    return AsyncRetrying(
        retry=retry_if_exception_type(CUT_OFF),
        stop=stop_after_attempt(RESENDS),
        wait=wait_random(0, 0.05),
        reraise=True,
    )


def relisting() -> AsyncRetrying:
    """Return the policy for asking again for a list that a gateway answered with a 5xx, and did not say when to."""
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random  # rarely needed

    return AsyncRetrying(
        retry=retry_if_exception(has_failed),
        stop=stop_after_attempt(RELISTS - 1),
        wait=wait_random(0, RELIST_PAUSE),
        reraise=True,
    )


def has_failed(error: BaseException) -> bool:
    """Say whether a gateway answered, but with a failure of its own that may be over in a moment."""
    return isinstance(error, GatewayUnavailable) and (error.status or 0) >= 500 and error.retry_after is None
