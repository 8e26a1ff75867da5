"""Reading one record, and errors that concern the whole cluster."""

from collections.abc import Callable

import httpx
import pytest

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import comparable
from tests.unit.apisix_ingress.gateway.adminapi.replies import (
    OFF,
    ROUTE,
    Handler,
    item,
    listing,
    make_backend,
    replying,
)

VERSION_2 = {"node": {"key": "/apisix/routes/1a2b", "value": {"id": "1a2b", "uri": "/a"}, "modifiedIndex": 7}}


@pytest.mark.parametrize(
    ("reply", "revision"),
    [(item("routes", "1a2b", uri="/a"), 2), (VERSION_2, 7), ({"value": {"id": "1a2b", "uri": "/a"}}, 0)],
    ids=["version 3", "version 2", "no index"],
)
async def test_record_is_read_with_its_revision(reply: object, revision: int) -> None:
    found = await make_backend(replying(200, reply)).get(ROUTE)
    assert found is not None
    assert (found.digest, found.revision) == (comparable("routes", {"id": "1a2b", "uri": "/a"}), revision)


async def test_lists_include_revisions() -> None:
    body = item("routes", "1a2b", labels={"managed-by": "apisix-ingress-controller"})
    got = await make_backend(listing(routes={"list": [body], "total": 1})).list_managed({ROUTE})
    assert got.owned[ROUTE].revision == 2


@pytest.mark.parametrize(("status", "body"), [(404, {"message": "Key not found"}), (400, OFF)])
async def test_a_missing_or_unserved_record_results_in_none(status: int, body: object) -> None:
    assert await make_backend(replying(status, body)).get(RecordKey("stream_routes", "s")) is None


@pytest.mark.parametrize(
    ("handler", "error", "cause"),
    [
        (replying(503, {"error_msg": "no etcd"}), GatewayUnavailable, "gateway:80: HTTP 503: no etcd"),
        (
            replying(200, "<html>log in</html>"),
            GatewayUnavailable,
            "gateway:80: HTTP 200, but the response is not from an Admin API",
        ),
        (replying(404, "<html>404</html>"), GatewayRejected, ""),
        (replying(401, {"description": "wrong apikey"}), GatewayUnauthorized, ""),
    ],
)
async def test_other_responses_are_errors_whose_cause_names_the_address(
    handler: Handler, error: type[GatewayError], cause: str
) -> None:
    with pytest.raises(error) as raised:
        await make_backend(handler).get(ROUTE)
    assert raised.value.cause.startswith(cause)


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (
            lambda: httpx.ConnectError("cannot connect to gateway:80: Connection refused"),
            "gateway:80: Connection refused",
        ),
        (lambda: httpx.ReadTimeout("silence"), "gateway:80: no response within 5 s"),
    ],
)
async def test_the_cause_of_a_missing_response_has_address_and_reason(
    failure: Callable[[], Exception], cause: str
) -> None:
    def handle(_: httpx.Request) -> httpx.Response:
        raise failure()

    with pytest.raises(GatewayUnavailable) as raised:
        await make_backend(handle).probe()
    assert raised.value.cause == cause
