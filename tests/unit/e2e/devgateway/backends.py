"""Upstreams and certificates for the contract tests: HTTP servers that return their names and the requests."""

from __future__ import annotations

import datetime
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from e2e.devgateway import process
from e2e.devgateway.ports import free_port

CONTRACT = Path(process.__file__).parent / "contract"
RECORDED = re.compile(r"127\.0\.0\.1:193(\d\d)")


def cases(name: str) -> list[dict[str, Any]]:
    """Read a file of recorded cases."""
    return [json.loads(line) for line in (CONTRACT / f"{name}.jsonl").read_text().splitlines()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length).decode()
        name = str(getattr(self.server, "name", ""))
        status = re.match(r"/__status/(\d+)", self.path)
        seen = {
            "upstream": name,
            "method": self.command,
            "path": self.path,
            "headers": dict(self.headers.items()),
            "body": text,
        }
        body = json.dumps(seen).encode()
        self.send_response(int(status.group(1)) if status else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Upstream", name)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    name = ""


@contextmanager
def upstreams(*names: str) -> Iterator[dict[str, int]]:
    """Serve upstreams on free ports; yields name → port."""
    servers = {}
    for name in names:
        servers[name] = _Server(("127.0.0.1", 0), _Handler)
        servers[name].name = name
        threading.Thread(target=servers[name].serve_forever, args=(0.02,), name=f"upstream.{name}", daemon=True).start()
    try:
        yield {name: server.server_address[1] for name, server in servers.items()}
    finally:
        for server in servers.values():
            server.shutdown()
            server.server_close()


@cache
def pair(name: str) -> tuple[str, str]:
    """Return a self-signed certificate and its key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), private.decode()


class Substitution:
    """Puts the ports of this run and certificates into recorded cases."""

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = {name.removeprefix("u").zfill(2): port for name, port in ports.items()}

    def port(self, recorded: str) -> int:
        """Return the port that stands for a recorded one; an unknown one is an unused port."""
        return self._ports.setdefault(recorded, free_port())

    def set(self, value: Any) -> Any:
        """Translate a recorded value."""
        if isinstance(value, dict):
            return {self.set(key): self.set(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.set(item) for item in value]
        if isinstance(value, int) and 19301 <= value <= 19399:
            return self.port(str(value)[-2:])
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if text.startswith("@cert:"):
            return pair(text[6:])[0]
        if text.startswith("@key:"):
            return pair(text[5:])[1]
        text = RECORDED.sub(lambda found: f"127.0.0.1:{self.port(found.group(1))}", text)
        return re.sub(r"localhost:193(\d\d)", lambda found: f"localhost:{self.port(found.group(1))}", text)
