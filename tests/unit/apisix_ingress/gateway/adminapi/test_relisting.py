"""Lists of a gateway that fails some requests: they are retried a few times, so that a comparison completes."""

import httpx
import pytest

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.adminapi import client
from apisix_ingress.model.keys import RECORD_KINDS
from tests.unit.apisix_ingress.gateway.adminapi.replies import make_backend

EMPTY = {"list": [], "total": 0}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RELIST_PAUSE", 0)


class Failing:
    """Responds to the first requests for each kind with an error, then with a list; records the requests."""

    def __init__(self, times: int, status: int = 503, headers: dict[str, str] | None = None) -> None:
        self.times, self.status, self.headers = times, status, headers
        self.asked: dict[str, int] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        kind = request.url.path.rpartition("/")[2]
        self.asked[kind] = self.asked.get(kind, 0) + 1
        if self.asked[kind] > self.times:
            return httpx.Response(200, json=EMPTY)
        return httpx.Response(self.status, headers=self.headers, text="failed")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_list_that_fails_twice_is_requested_again(status: int) -> None:
    gateway = Failing(2, status=status)
    await make_backend(gateway).list_managed(())
    assert gateway.asked == dict.fromkeys(RECORD_KINDS, 3)


@pytest.mark.parametrize(
    ("gateway", "want"),
    [(Failing(3), 3), (Failing(1, headers={"Retry-After": "2"}), 1), (Failing(1, status=429), 1)],
)
async def test_a_gateway_that_keeps_failing_or_sends_retry_after_gets_no_retries(gateway: Failing, want: int) -> None:
    with pytest.raises(GatewayUnavailable, match=f"GET {RECORD_KINDS[0]}: "):
        await make_backend(gateway).list_managed(())
    assert gateway.asked == {RECORD_KINDS[0]: want}
