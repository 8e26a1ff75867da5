"""The retry within one attempt: a request that met a connection which the gateway was just closing is sent again.

Whoever waits longer than that waits in the backoff of the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

CUT_OFF = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""How a request fails on a kept connection that the gateway closes at that moment (contract: fact 22)."""

RESENDS = 2
"""So often a request is sent again: the next kept connection may be stale as well."""


def resending() -> AsyncRetrying:
    """Return the policy for sending a GET, PUT or DELETE again once it was cut off; all three are idempotent."""
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random  # rarely needed

    return AsyncRetrying(
        retry=retry_if_exception_type(CUT_OFF),
        stop=stop_after_attempt(RESENDS),
        wait=wait_random(0, 0.05),
        reraise=True,
    )
