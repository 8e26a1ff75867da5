"""The Admin API of one standalone gateway, read like that of a gateway with etcd: by commands, one list per kind."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import LIST_TIMEOUT, AdminClient
from apisix_ingress.gateway.adminapi.responses import AdminResponse
from apisix_ingress.gateway.standalone.document import KINDS, listed

CONFIGS = "configs"
DIGEST = "X-Digest"


class StandaloneAdmin(AdminClient):
    """The Admin API of one standalone gateway."""

    async def probe(self) -> None:
        """Check whether the gateway responds and accepts the key."""
        await self.check()

    async def check(self) -> str:
        """Return the digest of the gateway's document; empty without one.

        Raises:
            GatewayError: There was no response, or an error.
        """
        response = await self.requests.request("HEAD", CONFIGS)
        await self.require_success(response, "HEAD")
        return str(response.headers.get(DIGEST, ""))

    async def document(self) -> AdminResponse:
        """Read the gateway's document.

        Raises:
            GatewayError: There was no response, or an error.
        """
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                response = await self.requests.send("GET", CONFIGS, limits=self.list_limits, largest=self.largest_list)
        except TimeoutError:
            raise GatewayUnavailable(f"GET {CONFIGS}: no complete document within {LIST_TIMEOUT:g} s") from None
        await self.require_success(response, "GET")
        if response.is_cut:
            field = self.requests.fields.largest_list
            raise GatewayUnavailable(f"GET {CONFIGS}: the document is too large: increase {field}", sent=False)
        return response

    async def require_success(self, response: AdminResponse, method: str) -> None:
        """Raise the error of a response, if it is one.

        Raises:
            GatewayError: The response is an error.
        """
        if response.status_code == HTTPStatus.NOT_FOUND:
            fields, url = self.requests.fields, self.requests.url
            raise GatewayRejected(404, f"no Admin API of a standalone gateway at {url}: check {fields.url}, and mode")
        if response.status_code not in (HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT):
            raise await self.requests.error(response, method, CONFIGS)

    async def _list(self, kind: str) -> bytes | None:
        if kind not in KINDS:
            return None
        response = await self.document()
        self._version, self.date = response.headers.get("Server", ""), response.headers.get("Date", "")
        return listed(kind, response.content)
