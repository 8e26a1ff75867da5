"""One standalone gateway: the requests of its Admin API, and which document it has."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.gateway.standalone.admin import CONFIGS, DIGEST, StandaloneAdmin

LAST_MODIFIED = "X-Last-Modified"

_OLDER = "must be greater than or equal to"
_FULL = "no memory"


REFUSED = (GatewayRejected, DependencyPending)
"""The errors of a gateway that rejects a document because of a record; it keeps the one before."""


class Outdated(GatewayUnavailable):
    """The gateway has a document with higher versions: another client wrote it."""


class NoMemory(GatewayRejected):
    """The gateway has no memory for a document, and has lost the one before."""


class Endpoint:
    """One gateway of a group.

    Args:
        admin: The client of its Admin API.
    """

    def __init__(self, admin: StandaloneAdmin) -> None:
        self.admin = admin
        self.url = admin.requests.url
        self.version = ""
        """Its `Server` header."""
        self.digest = ""
        """The digest of the document that it last accepted, or reported; empty: unknown."""
        self.error: GatewayError | None = None
        """Why the last request failed; None if it did not."""
        self.turn = asyncio.Lock()
        """Held while a document is written: one at a time."""
        self._modified = ""
        self._writes = 0
        self.is_ambiguous = False
        """Whether it got two documents in one second: TCP and UDP routes may stay those of the first one."""

    async def read(self) -> bytes:
        """Return its document.

        Raises:
            GatewayError: There was no response, or an error.
        """
        response = await self.admin.document()
        self.version = response.headers.get("Server", "")
        self._has(response.headers.get(DIGEST, ""))
        return response.content

    async def check(self) -> None:
        """Read which document it has.

        Raises:
            GatewayError: There was no response, or an error.
        """
        self._has(await self.admin.check())

    async def write(self, document: bytes, digest: str) -> None:
        """Give it a document; the caller has its `turn`.

        Raises:
            Outdated: It has a newer document.
            GatewayRejected: It rejects a record, or has no memory for the document.
            GatewayError: There was no response, or another error; it may have the document nevertheless.
        """
        self.digest = ""
        # A digest that it has had already would be ignored: the same document is sent again after an ambiguous one.
        sent_as = f"{digest}-{self._writes}"
        self._writes += 1
        response = await self.admin.requests.request("PUT", CONFIGS, document, headers={DIGEST: sent_as})
        try:
            await self.admin.require_success(response, "PUT")
        except GatewayError as error:
            raise _specific(error) from None
        self.digest = digest
        modified = response.headers.get(LAST_MODIFIED, "")
        self.is_ambiguous = modified == self._modified
        self._modified = modified

    def _has(self, digest: str) -> None:
        self.digest = digest.partition("-")[0]


def _specific(error: GatewayError) -> GatewayError:
    if error.status == HTTPStatus.BAD_REQUEST and _OLDER in str(error):
        return Outdated(str(error), status=400)
    if error.status == HTTPStatus.INTERNAL_SERVER_ERROR and _FULL in str(error):
        remedy = "increase nginx_config.meta.lua_shared_dict.standalone-config of the gateway (default: 10m)"
        return NoMemory(500, f"the gateway has no memory for this many records: {remedy}")
    return error
