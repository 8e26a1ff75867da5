"""Internal addresses: the networks and names of gateways, etcd and admin services that an operator lists.

Parsed once from the settings; every host that an object names is checked against it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.network.cluster_dns import DEFAULT_DOMAIN, shorten
from apisix_ingress.model.network.host_names import LONGEST_HOST
from apisix_ingress.model.network.ip_address import IpAddress, IpNetwork, parse_ip

_NAME = ValuePattern(
    r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?)*", LONGEST_HOST
)
_SHAPES = (
    "write a network (10.1.0.0/16), an address, a name or *.name; append :port to an address or name for one port only"
)

Ports = frozenset[int | None]
"""Ports; None stands for every port."""


@dataclass(frozen=True, slots=True)
class InternalAddresses:
    """Destinations that are rejected for every object.

    Attributes:
        networks: Networks, rejected on every port.
        hosts: Address or name → ports. Names of the cluster domain are short (`etcd.apisix`).
        below: Name → ports of every name below it.
        domain: The cluster domain.
    """

    networks: tuple[IpNetwork, ...] = ()
    hosts: Mapping[str, Ports] = field(default_factory=dict)
    below: Mapping[str, Ports] = field(default_factory=dict)
    domain: str = DEFAULT_DOMAIN

    @property
    def is_empty(self) -> bool:
        """Whether nothing is listed."""
        return not (self.networks or self.hosts or self.below)

    def has_network_of(self, addresses: Iterable[IpAddress]) -> bool:
        """Return whether one of the addresses is in a network of the list."""
        return any(address in network for address in addresses for network in self.networks)

    def has_address(self, addresses: Iterable[IpAddress], port: int | None) -> bool:
        """Return whether one of the addresses is in the list; without a port, on any port."""
        return any(_on(self.hosts.get(str(address)), port) for address in addresses)

    def has_name(self, name: str, port: int | None) -> bool:
        """Return whether a lower-case name is in the list; without a port, on any port."""
        short = shorten(name, self.domain)
        labels = short.split(".")
        parents = (".".join(labels[count:]) for count in range(1, len(labels)))
        return _on(self.hosts.get(short), port) or any(_on(self.below.get(parent), port) for parent in parents)


def internal_addresses(texts: Iterable[str], domain: str = DEFAULT_DOMAIN) -> InternalAddresses:
    """Parse the list in the settings.

    Raises:
        ValueError: A text is neither a network nor an address nor a name.
    """
    networks: list[IpNetwork] = []
    hosts: dict[str, Ports] = {}
    below: dict[str, Ports] = {}
    for text in texts:
        host, port = parse_internal(text)
        if not isinstance(host, str):
            networks.append(host)
        elif host.startswith("*."):
            _add(below, shorten(f"x{host[1:]}", domain).removeprefix("x."), port)
        else:
            short = shorten(host, domain)
            _add(hosts, short, port)
            if short != host:
                # For a Service also the names of its Pods, and its short name within its namespace.
                _add(below, short, port)
                _add(hosts, short.partition(".")[0], port)
    return InternalAddresses(tuple(networks), hosts, below, domain)


def parse_internal(text: str) -> tuple[IpNetwork | str, int | None]:
    """Return the network, or the canonical host with its port, that an entry of the list names.

    Raises:
        ValueError: It stands for neither.
    """
    if "/" in text:
        return _network(text), None
    host, port = _split_port(text.strip().lower())
    address = parse_ip(host)
    if address is not None:
        return str(address), port
    name = host.removesuffix(".")
    if not _NAME.fits(name):
        raise ValueError(f"{text!r} is neither a network nor a host; {_SHAPES}")
    return name, port


def _network(text: str) -> IpNetwork:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not a network; {_SHAPES}") from None
    raise ValueError(f"{text!r} is an address inside a network; write {network} or {text.partition('/')[0]}")


def _split_port(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        return text, None
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536 and len(port) < 6):
        raise ValueError(f"{text!r} has no port from 1 to 65535 after the colon; {_SHAPES}")
    return host, int(port)


def _add(found: dict[str, Ports], name: str, port: int | None) -> None:
    found[name] = found.get(name, frozenset()) | {port}


def _on(ports: Ports | None, port: int | None) -> bool:
    return ports is not None and (port is None or None in ports or port in ports)


NOTHING_INTERNAL = InternalAddresses()
