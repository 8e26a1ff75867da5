"""Finds the gateways of a group: each address of the host in a URL is one, such as the Pods of a headless Service."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from apisix_ingress.errors import GatewayUnavailable

RESOLVE_SECONDS = 2.0


async def urls_of_gateways(urls: Sequence[str]) -> list[str]:
    """Return the URL of each gateway's Admin API.

    The host of an https URL stays, since the gateway's certificate is for it.

    Raises:
        GatewayUnavailable: A host has no addresses.
    """
    found = [each for url in urls for each in await _addressed(url)]
    return list(dict.fromkeys(found))


async def _addressed(url: str) -> list[str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or host == "localhost" or _is_address(host):
        return [url]
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            loop = asyncio.get_running_loop()
            infos = await loop.getaddrinfo(host, parts.port or 80, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise GatewayUnavailable(f"{host}: no response of the name server", sent=False) from None
    except OSError as error:
        raise GatewayUnavailable(f"{host}: {error.strerror or error}", sent=False) from None
    # A Pod with two addresses is one gateway.
    family = min((info[0] for info in infos), default=socket.AF_INET)
    addresses = sorted({str(info[4][0]) for info in infos if info[0] == family})
    return [parts._replace(netloc=_netloc(address, parts.port)).geturl() for address in addresses]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _netloc(address: str, port: int | None) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port}" if port else host
