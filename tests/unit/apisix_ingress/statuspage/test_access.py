"""Access: loopback by default, and only if the Host header is a loopback name too."""

import pytest
from aiohttp.test_utils import make_mocked_request

from apisix_ingress.statuspage.access import is_local
from tests.unit.apisix_ingress.statuspage.harness import make_harness, served


@pytest.mark.parametrize(
    ("peer", "host", "want"),
    [
        ("127.0.0.1", "localhost:9000", True),
        ("127.0.0.1", "127.0.0.1:9000", True),
        ("::1", "[::1]:9000", True),
        ("::ffff:127.0.0.1", "localhost", True),
        ("127.0.0.1", "rebound.example.org:9000", False),
        ("127.0.0.1", "localhost.example.org", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[", False),
        ("127.0.0.6", "localhost", False),
        ("10.244.0.9", "localhost", False),
        ("fe80::1%eth0", "localhost", False),
        ("", "localhost", False),
    ],
)
def test_local_means_loopback_by_address_and_by_name(peer: str, host: str, want: bool) -> None:
    request = make_mocked_request("GET", "/status", headers={"Host": host}).clone(remote=peer)
    assert is_local(request) is want


@pytest.mark.parametrize("path", ["", "/records", "/api/overview", "/events", "/assets/page.js"])
async def test_foreign_name_is_refused_with_the_remedy(path: str) -> None:
    async with served(make_harness()) as harness:
        got = await harness.ask(f"/status{path}", headers={"Host": "rebound.example.org"})
        assert got.status == 403
        assert "kubectl port-forward" in got.text
        assert "default-src 'none'" in got.headers["Content-Security-Policy"]


async def test_everyone_is_served_if_the_setting_allows_it() -> None:
    async with served(make_harness(), "everyone") as harness:
        assert (await harness.ask("/status", headers={"Host": "page.example.org"})).status == 200


async def test_other_pages_of_the_server_are_not_affected() -> None:
    async with served(make_harness()) as harness:
        got = await harness.ask("/healthz", headers={"Host": "rebound.example.org"})
        assert got.status == 200
        assert "Content-Security-Policy" not in got.headers
