"""The webhook's certificate and the CA of its clients: replaced while serving, or unusable at the start."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from trustme import CA, LeafCert

from apisix_ingress.errors import ConfigError
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.webhook.review import ALLOWED, Verdict
from apisix_ingress.webhook.server import WebhookServer
from tests.flow.webhook.harness import BAD, BOUND, HOST, PATIENT, Client, Files, Seen, hang_up, head, judging, review


def der(leaf: LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


async def test_new_certificate_is_shown_without_a_restart(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    old, new = await client.shown(), files.issue()
    reader, writer = await client.connect()
    files.write(new)
    async with asyncio.timeout(BOUND):
        while await client.shown() == old:  # noqa: ASYNC110  # the server looks once a second
            await asyncio.sleep(0.05)
    assert await client.shown() == der(new)
    writer.write(head(len(review(BAD))) + review(BAD))
    async with asyncio.timeout(BOUND):
        assert b" 200 " in await reader.readline()
    await hang_up(writer)


async def test_no_handshake_fails_while_certificates_are_swapped(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    leaves = [files.issue() for _ in range(2)]
    known = {await client.shown(), *map(der, leaves)}

    def swap() -> None:
        for number in range(50):
            files.write(leaves[number % 2])
            client.certificate.reload()

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    async with asyncio.timeout(BOUND):
        while not swapping.done():
            assert await client.shown() in known
        await swapping


async def test_a_mismatched_pair_leaves_the_previous_one_in_use(client: Client, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.authority.configure_trust(client.trust)
    old, new = await client.shown(), files.issue()
    half = {"tls.crt": new.cert_chain_pems[0].bytes(), "tls.key": b"garbage"}
    for name, content in half.items():
        (tmp_path / name).write_bytes(content)
        assert not client.certificate.reload()
        assert await client.shown() == old
    (tmp_path / "tls.key").unlink()
    assert not client.certificate.reload()
    assert await client.shown() == old
    files.write(new)
    async with asyncio.timeout(BOUND):
        while await client.shown() != der(new):  # detected by the server's own check, or by this request
            client.certificate.reload()
    assert not (await client.ask(BAD))["allowed"]


@pytest.mark.parametrize("content", ["", "garbage", None])
def test_certificate_that_cannot_be_used_at_the_start_is_an_error(tmp_path: Path, content: str | None) -> None:
    files = Files(tmp_path)
    files.write(files.issue())
    path = tmp_path / "tls.key"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"webhook: .*give a readable PEM certificate and its key"):
        files.certificate()


async def test_address_in_use_is_an_error(tmp_path: Path) -> None:
    async with judging(tmp_path, lambda review: Verdict(), PATIENT) as client:
        certificate = Files(tmp_path).certificate()
        server = WebhookServer(
            HOST,
            client.port,
            certificate=certificate,
            judge=lambda review: Verdict(),
            observer=Seen(),
            clock=MonotonicClock(),
        )
        with pytest.raises(ConfigError, match=rf"webhook\.listen: cannot listen on {HOST}:{client.port}"):
            await server.__aenter__()


def client_authority(folder: Path) -> CA:
    authority = CA()
    (folder / "clients.crt").write_bytes(authority.cert_pem.bytes())
    return authority


async def answered(client: Client, identity: LeafCert | None) -> bool:
    """Return whether a client with this certificate gets a response."""
    trust = ssl.create_default_context()
    trust.load_verify_locations(cadata=ssl.DER_cert_to_PEM_cert(client.trust.get_ca_certs(binary_form=True)[-1]))
    if identity is not None:
        identity.configure_cert(trust)
    try:
        return (await replace(client, trust=trust).post(review(BAD)))[0] == 200
    except aiohttp.ClientError:
        return False


async def test_only_clients_with_a_certificate_of_the_ca_get_a_response(tmp_path: Path) -> None:
    authority, stranger = client_authority(tmp_path), CA()
    known, unknown = (each.issue_cert("apiserver") for each in (authority, stranger))
    async with judging(tmp_path, lambda review: ALLOWED, PATIENT, "clients.crt") as client:
        assert not await answered(client, None)
        assert not await answered(client, unknown)
        assert await answered(client, known)
        (tmp_path / "clients.crt").write_bytes(stranger.cert_pem.bytes())
        async with asyncio.timeout(BOUND):
            while not await answered(client, unknown):
                client.certificate.reload()
        assert not await answered(client, known)
        (tmp_path / "clients.crt").unlink()
        client.certificate.reload()
        assert await answered(client, unknown)
        assert not await answered(client, None)


def test_ca_that_cannot_be_read_at_the_start_is_an_error(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write(files.issue())
    with pytest.raises(ConfigError, match="and the certificates of the clients' CA"):
        files.certificate("absent.crt")
