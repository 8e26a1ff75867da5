"""TLS to an API server: what is verified, and the client certificate. Local sockets only."""

import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from trustme import CA

from apisix_ingress.kube.client import rest_config
from apisix_ingress.kube.client.rest_config import Pem, RestConfig, open_session, tls_context

HOST = "127.0.0.1"
AUTHORITY = CA()
TRUSTED = Pem(AUTHORITY.cert_pem.bytes())
CLIENT = AUTHORITY.issue_cert("client.example")
CERTIFICATE, KEY = Pem(CLIENT.cert_chain_pems[0].bytes()), Pem(CLIENT.private_key_pem.bytes())


@asynccontextmanager
async def serving(name: str = HOST, *, needs_client: bool = False) -> AsyncIterator[str]:
    """Serve the subject of the client certificate; yield the URL."""

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert") or {}
        return web.json_response([value for part in peer.get("subjectAltName", ()) for value in part])

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert(name).configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED if needs_client else ssl.CERT_NONE
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
    try:
        yield f"https://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(config: RestConfig) -> object:
    name = {"server_hostname": config.server_name} if config.server_name else {}
    async with open_session(config) as session, session.get(config.host, **name) as response:  # type: ignore[arg-type]
        return await response.json()


async def test_the_server_is_verified_with_its_ca() -> None:
    comment = Pem(b"# Z\xc3\xbcrich\n" + TRUSTED.content)
    async with serving() as url:
        assert await ask(RestConfig(url, ca=comment)) == []
        for ca in (None, Pem(CA().cert_pem.bytes())):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await ask(RestConfig(url, ca=ca))


async def test_verification_is_disabled_only_on_request() -> None:
    async with serving("another.example") as url:
        assert await ask(RestConfig(url, is_verified=False)) == []
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask(RestConfig(url, ca=TRUSTED))
        assert await ask(RestConfig(url, ca=TRUSTED, server_name="another.example")) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"no certificate"])
def test_a_ca_file_without_certificates_never_means_those_of_the_system(content: bytes) -> None:
    with pytest.raises(ssl.SSLError):
        tls_context(RestConfig("https://x", ca=Pem(content)))


async def test_a_client_certificate_is_sent_from_memory_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def look(context: ssl.SSLContext, *args: object, **named: object) -> None:
        seen.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())
        load(context, *args, **named)  # type: ignore[arg-type]

    async with serving(needs_client=True) as url:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
        assert await ask(RestConfig(url, TRUSTED, CERTIFICATE, KEY)) == ["DNS", "client.example"]
        assert (seen, os.listdir(tmp_path)) == ([0o600, 0o600], [])
        with pytest.raises(ssl.SSLError):
            tls_context(RestConfig(url, TRUSTED, CERTIFICATE, Pem(b"half a key")))
    assert os.listdir(tmp_path) == []


async def test_a_client_certificate_in_files_needs_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_config, "tempfile", None)
    (tmp_path / "crt").write_bytes(CERTIFICATE.content)
    (tmp_path / "key").write_bytes(KEY.content)
    (tmp_path / "both").write_bytes(KEY.content + CERTIFICATE.content)
    certificate, key, both = (Pem((tmp_path / name).read_bytes(), tmp_path / name) for name in ("crt", "key", "both"))
    async with serving(needs_client=True) as url:
        for config in (RestConfig(url, TRUSTED, certificate, key), RestConfig(url, TRUSTED, both)):
            assert await ask(config) == ["DNS", "client.example"]


def test_an_encrypted_key_is_an_error_instead_of_a_prompt() -> None:
    private = serialization.load_pem_private_key(KEY.content, None)
    encryption = serialization.BestAvailableEncryption(b"password")
    key = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    with pytest.raises(ssl.SSLError):
        tls_context(RestConfig("https://x", certificate=CERTIFICATE, key=Pem(key)))


async def test_the_session_ignores_netrc_and_cookies_and_has_no_limit_of_connections() -> None:
    async with open_session(RestConfig("https://x")) as session:
        assert session.connector is not None
        assert (session.trust_env, session.connector.limit, session.connector.limit_per_host) == (False, 0, 0)
        assert isinstance(session.cookie_jar, aiohttp.DummyCookieJar)
