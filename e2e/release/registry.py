"""A registry under the name of the real one: TLS with its own CA, users, data on disk, reachable only by our commands.

The commands run in a mount namespace whose /etc/hosts maps the name to 127.0.0.1. So they are the workflow's own,
without a change, and cannot reach the real registry.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from trustme import CA

from e2e.cluster.client import wait_until
from e2e.cluster.process import Process
from e2e.release import tools
from e2e.release.rehearsal import NotRunError, Rehearsal

HOST = "ghcr.io"
PORT = 443
USER = "rehearsal"


class Registry:
    """The files of one registry below the rehearsal's folder."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self.folder = rehearsal.work / "registry"
        self.data = self.folder / "data"
        self.trusted = self.folder / "trusted.pem"
        self._hosts = self.folder / "hosts"
        self.token = self._prepare()

    def environment(self) -> dict[str, str]:
        """Return variables that make buildah, cosign and helm trust the registry and keep credentials in the folder."""
        return {
            "DOCKER_CONFIG": str(self.folder),
            "HELM_REGISTRY_CONFIG": str(self.folder / "helm.json"),
            "REGISTRY_AUTH_FILE": str(self.folder / "config.json"),
            "SSL_CERT_FILE": str(self.trusted),
        }

    def wrap(self, *command: str) -> list[str]:
        """Return the command as it runs with the registry's name mapped to this machine."""
        script = f'mount --bind "{self._hosts}" /etc/hosts && exec "$@"'
        return ["unshare", "--mount", "bash", "-c", script, "bash", *command]

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the registry for the time of a block."""
        program = tools.locate_tool(self._rehearsal, tools.REGISTRY)
        process = Process("registry", [program, "serve", self.folder / "config.yaml"], log=self.folder / "registry.log")
        process.start()
        try:
            wait_until(lambda: process.returncode is not None or self._answers(), bool, "the registry to answer")
            if process.returncode is not None:
                raise NotRunError(f"the registry ended with {process.returncode}: {process.tail(3)}")
            yield
        finally:
            process.stop()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"https://127.0.0.1:{PORT}/v2/", verify=False, trust_env=False).status_code == 401
        except httpx.HTTPError:
            return False

    def _prepare(self) -> str:
        secret = self.folder / "token"
        if not secret.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {HOST}\n")
            self._write_certificates()
            token = secrets.token_hex(16)
            users = self._rehearsal.shell.run("htpasswd", "-nbB", USER, token)
            (self.folder / "users").write_text(users + "\n")
            (self.folder / "config.yaml").write_text(self._configuration())
            secret.write_text(token)
        return secret.read_text()

    def _write_certificates(self) -> None:
        authority = CA(organization_name="apisix-ingress rehearsal")
        server = authority.issue_cert(HOST, "127.0.0.1")
        server.private_key_and_cert_chain_pem.write_to_path(str(self.folder / "server.pem"))
        system = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        self.trusted.write_bytes(authority.cert_pem.bytes() + system.read_bytes())

    def _configuration(self) -> str:
        pem = self.folder / "server.pem"
        return f"""\
version: 0.1
storage: {{filesystem: {{rootdirectory: {self.data}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{PORT}", tls: {{certificate: {pem}, key: {pem}}}}}
auth: {{htpasswd: {{realm: rehearsal, path: {self.folder / "users"}}}}}
"""


@contextmanager
def serve_plainly(rehearsal: Rehearsal, address: str) -> Iterator[None]:
    """Serve what was published without TLS and users, for a node that pulls it."""
    folder = Registry(rehearsal).folder
    configuration = folder / "plain.yaml"
    storage = f"{{filesystem: {{rootdirectory: {folder / 'data'}}}}}"
    configuration.write_text(f'version: 0.1\nstorage: {storage}\nhttp: {{addr: "{address}"}}\n')
    program = tools.locate_tool(rehearsal, tools.REGISTRY)
    process = Process("registry", [program, "serve", configuration], log=folder / "plain.log")
    process.start()
    try:
        yield
    finally:
        process.stop()
