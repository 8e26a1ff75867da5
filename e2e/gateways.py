"""A gateway that is already running: stories run against it in the same way as against the development gateway."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class RemoteGateway:
    """A gateway by its URLs. `tls_address` is host:port, or empty."""

    admin_url: str
    admin_key: str
    proxy_url: str
    tls_address: str = ""

    def records(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the records of a kind by id, as the Admin API lists them."""
        reply = httpx.get(
            f"{self.admin_url}/{kind}", headers={"X-API-KEY": self.admin_key}, timeout=10, trust_env=False
        )
        reply.raise_for_status()
        listed = reply.json().get("list") or []
        return {item["key"].rpartition("/")[2]: item["value"] for item in listed}
