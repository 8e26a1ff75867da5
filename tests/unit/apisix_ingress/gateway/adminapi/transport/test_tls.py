"""Certificates of Admin APIs and of clients."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
import trustme

from apisix_ingress.gateway.adminapi.tls import TlsContext, TlsFiles
from apisix_ingress.gateway.adminapi.transport import AiohttpTransport
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.gateway.adminapi.transport.clients import answer, outcome
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import serving


class Files:
    """A certificate authority and a pair of files for one gateway."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        self.pair_file = folder / "client.pem"
        self.authority.cert_pem.write_to_path(self.ca_file)
        self.issue()

    def issue(self, name: str = "client.test") -> None:
        self.authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(self.pair_file)

    def server(self, *, asks: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("127.0.0.1").configure_cert(context)
        if asks:
            self.authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


async def test_certificate_of_a_stranger_is_a_connect_error(tmp_path: Path) -> None:
    files = Files(tmp_path)
    tls = TlsContext(TlsFiles(), clock=FakeClock())
    async with (
        serving(answer, files.server()) as url,
        httpx.AsyncClient(transport=AiohttpTransport(connections=1, tls=tls)) as ours,
        httpx.AsyncClient(trust_env=False) as theirs,
    ):
        got = [await outcome(client, "PUT", url) for client in (ours, theirs)]
    assert got == ["ConnectError", "ConnectError"]


@pytest.mark.parametrize(
    ("trusted", "name", "why"),
    [
        (False, "127.0.0.1", "unable to get local issuer certificate"),
        (True, "localhost", "Hostname mismatch, certificate is not valid for 'localhost'."),
    ],
)
async def test_a_rejected_certificate_is_reported_with_its_location(
    tmp_path: Path, trusted: bool, name: str, why: str
) -> None:
    files = Files(tmp_path)
    tls = TlsContext(TlsFiles(ca_file=str(files.ca_file) if trusted else ""), clock=FakeClock())
    async with (
        serving(answer, files.server()) as url,
        httpx.AsyncClient(transport=AiohttpTransport(connections=1, tls=tls)) as ours,
    ):
        url = url.replace("127.0.0.1", name)
        with pytest.raises(httpx.ConnectError) as caught:
            await ours.put(url)
    place = url.removeprefix("https://").rstrip("/")
    assert str(caught.value) == f"the certificate of {place} is not valid ({why}): check tls.ca_file and the host name"


@pytest.mark.parametrize("trusting", [TlsFiles(verify=False), None])
async def test_trusted_certificate_is_accepted(tmp_path: Path, trusting: TlsFiles | None) -> None:
    files = Files(tmp_path)
    tls = TlsContext(trusting or TlsFiles(ca_file=str(files.ca_file)), clock=FakeClock())
    async with (
        serving(answer, files.server()) as url,
        httpx.AsyncClient(transport=AiohttpTransport(connections=1, tls=tls)) as ours,
    ):
        assert await outcome(ours, "PUT", url) == "200"


async def test_replaced_client_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    files, clock, serials = Files(tmp_path), FakeClock(), []
    tls = TlsContext(
        TlsFiles(ca_file=str(files.ca_file), cert_file=str(files.pair_file), key_file=str(files.pair_file)),
        clock=clock,
    )

    async def note_serial(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serials.append(writer.get_extra_info("peercert")["serialNumber"])
        await answer(reader, writer)

    async with (
        serving(note_serial, files.server(asks=True)) as url,
        httpx.AsyncClient(transport=AiohttpTransport(connections=1, tls=tls)) as ours,
    ):
        assert await outcome(ours, "PUT", url) == "200"
        files.pair_file.write_text("half a file")
        clock.shift(2)
        assert await outcome(ours, "PUT", url) == "200"
        files.issue()
        clock.shift(2)
        assert await outcome(ours, "PUT", url) == "200"
    assert len(set(serials)) == 2
