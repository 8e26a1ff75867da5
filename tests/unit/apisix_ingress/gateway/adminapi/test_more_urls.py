"""A cluster with several addresses: the next one is used when no connection is possible, and only then."""

import httpx
import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import SETTINGS, AdminKey
from apisix_ingress.gateway.adminapi.client import AdminClient
from tests.unit.apisix_ingress.gateway.adminapi.replies import ROUTE, WRITTEN, make_record

URLS = ("http://one/apisix/admin", "http://two/admin", "http://three/admin")


class Gateways:
    """Three gateways, some of which are down; keeps where requests went."""

    def __init__(self, down: set[str], error: type[httpx.TransportError] = httpx.ConnectError) -> None:
        self.down = down
        self.seen: list[str] = []
        self._error = error
        self.key = AdminKey(lambda: SecretStr("sesame-key"))
        transport = httpx.MockTransport(self._handle)
        self.client = AdminClient(
            URLS[0], self.key, more_urls=URLS[1:], controller="apisix-ingress", timeout=5.0, transport=transport
        )

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.url.host}{request.url.path}")
        if request.url.host in self.down:
            raise self._error("refused", request=request)
        return httpx.Response(200, json=WRITTEN)


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ConnectTimeout])
async def test_the_next_gateway_is_used_and_stays_in_use(error: type[httpx.TransportError]) -> None:
    gateways = Gateways({"one"}, error)
    await gateways.client.put(make_record())
    await gateways.client.put(make_record())
    assert gateways.seen == ["one/apisix/admin/routes/1a2b", "two/admin/routes/1a2b", "two/admin/routes/1a2b"]
    gateways.down = {"two", "three"}
    await gateways.client.put(make_record())
    assert gateways.seen[3:] == ["two/admin/routes/1a2b", "three/admin/routes/1a2b", "one/apisix/admin/routes/1a2b"]


async def test_each_gateway_is_tried_once() -> None:
    gateways = Gateways({"one", "two", "three"})
    with pytest.raises(GatewayUnavailable) as error:
        await gateways.client.put(make_record())
    assert (error.value.sent, [each.partition("/")[0] for each in gateways.seen]) == (False, ["one", "two", "three"])


async def test_a_gateway_that_got_the_request_is_not_replaced() -> None:
    gateways = Gateways({"one"}, httpx.ReadTimeout)
    with pytest.raises(GatewayUnavailable):
        await gateways.client.delete(ROUTE)
    assert gateways.seen == ["one/apisix/admin/routes/1a2b"]


async def test_a_rejection_is_the_answer() -> None:
    client = AdminClient(
        URLS[0],
        AdminKey(lambda: SecretStr("")),
        more_urls=URLS[1:],
        controller="apisix-ingress",
        timeout=5.0,
        transport=httpx.MockTransport(lambda request: httpx.Response(400, json={"error_msg": request.url.host})),
    )
    with pytest.raises(GatewayRejected, match="one"):
        await client.put(make_record())


async def test_a_client_for_another_address_uses_no_other() -> None:
    gateways = Gateways({"elsewhere"})
    other = gateways.client.elsewhere("http://elsewhere/apisix/admin", gateways.key, SETTINGS)
    with pytest.raises(GatewayUnavailable):
        await other.put(make_record())
    assert gateways.seen == ["elsewhere/apisix/admin/routes/1a2b"]
