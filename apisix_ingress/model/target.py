"""A target: a gateway cluster that a GatewayProxy describes, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

Mode = Literal["apisix", "apisix-standalone"]
STANDALONE: Final = "apisix-standalone"


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway cluster.

    Attributes:
        name: Its URL or Service: several GatewayProxies may describe the same gateways, which one engine writes to.
        mode: Where the gateways keep records.
        urls: The URLs of their Admin APIs; with etcd, the first one is used.
        key: The admin key.
        verify: Whether to verify the certificate of an https URL.
    """

    name: str
    mode: Mode
    urls: tuple[str, ...]
    key: str = field(repr=False)
    verify: bool
