"""Other gateways than the development gateway: one that is already running, and any that a command starts."""

import json
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from e2e.devgateway.process import STANDALONE, DevGateway, records_in


@dataclass(frozen=True, slots=True)
class RemoteGateway:
    """A gateway by its URLs. `tls_address` is host:port, or empty; `mode` as in the settings of a cluster."""

    admin_url: str
    admin_key: str
    proxy_url: str
    tls_address: str = ""
    mode: str = "apisix"

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the records of a kind by id, as the Admin API lists them with etcd."""
        is_standalone = self.mode == STANDALONE
        path = "configs" if is_standalone else kind
        reply = httpx.get(
            f"{self.admin_url}/{path}", headers={"X-API-KEY": self.admin_key}, timeout=10, trust_env=False
        )
        reply.raise_for_status()
        if is_standalone:
            return records_in(reply.json(), kind)
        listed = reply.json().get("list") or []
        return {item["key"].rpartition("/")[2]: item["value"] for item in listed}


class CommandGateway(DevGateway):
    """A gateway that a command starts in a folder, and another one stops.

    The command prints `admin_url`, `admin_key`, `proxy_url` and `tls_address` as JSON when the gateway is ready.
    Stories that need functions of the development gateway are skipped.
    """

    def __init__(self, start: str, stop: str, *, standalone: bool) -> None:
        super().__init__(standalone=standalone)
        self._start, self._stop = shlex.split(start), shlex.split(stop)

    def start(self) -> None:
        """Start it."""
        shown = subprocess.run([*self._start, self.data_dir], check=True, capture_output=True, text=True).stdout
        found = json.loads(shown)
        self.admin_key, self.tls_address = found["admin_key"], found["tls_address"]
        self.admin_address, self.proxy_address = (found[name].split("/")[2] for name in ("admin_url", "proxy_url"))

    def stop(self) -> None:
        """Stop it."""
        subprocess.run([*self._stop, self.data_dir], check=True, capture_output=True)

    def restart(self) -> None:
        """Skip the story: another start may choose other ports."""
        pytest.skip("the ports of this gateway may change")

    pause = restart

    def _control(self, method: str, path: str, body: object = None) -> Any:
        pytest.skip(f"{method} {path}: only the development gateway has it")
