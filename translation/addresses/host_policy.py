"""Hosts that the settings reject by their notation, regardless of the objects in the cluster (see `destinations`).

An address is recognized in every notation (`model.network.ip_address`). Only the gateway knows what a name resolves to.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.network.internal_addresses import InternalAddresses
from apisix_ingress.model.network.ip_address import NUMBER, IpAddress, IpNetwork, embedded_ips, parse_ip, readings
from translation.core.options import Options

_NETWORKS: tuple[tuple[str, str], ...] = (
    ("127.0.0.0/8", "a loopback address"),
    ("::1/128", "a loopback address"),
    ("0.0.0.0/8", "the unspecified address"),
    ("::/128", "the unspecified address"),
    ("169.254.0.0/16", "a link-local address, which cloud metadata services use"),
    ("fe80::/10", "a link-local address"),
    ("224.0.0.0/4", "a multicast address"),
    ("ff00::/8", "a multicast address"),
    ("255.255.255.255/32", "the broadcast address"),
    ("fd00:ec2::254/128", "an address of cloud metadata"),
    ("fd20:ce::254/128", "an address of cloud metadata"),
    ("100.100.100.200/32", "an address of cloud metadata"),
    ("192.0.0.192/32", "an address of cloud metadata"),
    ("168.63.129.16/32", "an address of cloud metadata"),
)
_REFUSED: tuple[tuple[IpNetwork, str], ...] = tuple((ipaddress.ip_network(text), what) for text, what in _NETWORKS)

_GATEWAY = "the gateway itself"
_METADATA = "a name of cloud metadata"
_NODE = "a name of the machine that runs the container"
_LOOPBACK = "a name that resolves to a loopback address"
_SPELT = "a name that resolves to the address it contains; write the address instead"

_NAMES: dict[str, str] = {
    **dict.fromkeys(("localhost", "localhost.localdomain", "localhost4", "localhost6"), _GATEWAY),
    **dict.fromkeys(("localhost4.localdomain4", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"), _GATEWAY),
    **dict.fromkeys(("metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal"), _METADATA),
    **dict.fromkeys(("instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com"), _METADATA),
    **dict.fromkeys(("metadata.packet.net", "metadata.platformequinix.com"), _METADATA),
    **dict.fromkeys(("host.docker.internal", "gateway.docker.internal", "host.containers.internal"), _NODE),
    **dict.fromkeys(("host.minikube.internal", "host.k3d.internal", "host.lima.internal"), _NODE),
}
"""Well-known names of internal destinations. No list of such names can be complete."""

_ZONES: dict[str, str] = {
    "localhost": _GATEWAY,
    **dict.fromkeys(("localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "localho.st", "local.gd"), _LOOPBACK),
    **dict.fromkeys(("fuf.me", "localhost.direct", "lcl.host", "smackaho.st", "yoogle.com"), _LOOPBACK),
    **dict.fromkeys(("nip.io", "sslip.io", "xip.io", "xip.name", "traefik.me", "local-ip.sh", "ipq.co"), _SPELT),
    **dict.fromkeys(("backname.io", "my.local-ip.co", "rbndr.us", "1u.ms"), _SPELT),
    **dict.fromkeys(("ec2.internal", "compute.internal"), _SPELT),
}
"""Public zones in which every name resolves to a loopback address, or to an address that is part of the name."""

_HOST = ValuePattern(r"[a-z0-9_.-]+")

_PORTS = {"http": 80, "https": 443}

_JUDGED_KEPT = 65_536

_DEEPEST = 3
"""Number of labels of the longest zone in `_ZONES`."""

ADMIN = "an address of the Admin API"
INTERNAL = "an internal address"
_SINGLE = (
    "a name without a namespace, which resolves to a Service in the gateway's namespace; write"
    " <service>.<namespace>.svc"
)
_NO_HOST = "neither a host name nor an IP address"

BY_PRESET = "kubernetes.external_addresses: refuse-internal"
_BY_LIST = "kubernetes.internal_addresses"


def admin_addresses(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Return host and port of each Admin API URL.

    For a name also its first label, which may be sufficient in the cluster.
    """
    found = set()
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        names = {*judged(host).spellings, host if parse_ip(host) else host.partition(".")[0]}
        found |= {(name, parts.port or _PORTS[parts.scheme]) for name in names}
    return frozenset(found)


class Refusal(NamedTuple):
    """What a rejected host is, and the setting that rejects it."""

    what: str
    setting: str


def refusal(options: Options, host: str, port: int | None) -> Refusal | None:
    """Return why objects may not use a host as a destination; None if its notation permits it."""
    if what := _listed(options.internal, host, port):
        return Refusal(what, _BY_LIST)
    # Health checks probe any port of a host, so the Admin API is rejected on every port.
    what = _inside(options, host, None)
    return Refusal(what, BY_PRESET) if what else None


def refused(options: Options, host: str, port: int | None = None) -> str:
    """Return what a host is that the settings reject by its notation; empty if they do not.

    Args:
        options: The settings.
        host: A name or an address, in any notation.
        port: The Admin API and entries with a port apply only to this port; other services on that machine may be
            for everyone. None: any port.
    """
    return _listed(options.internal, host, port) or _inside(options, host, port)


def refused_pod(options: Options, address: str, port: int) -> bool:
    """Return whether an address of a Pod in the same namespace is rejected anyway: listed networks protect others."""
    return options.internal.has_address(judged(address).addresses, port) or bool(_inside(options, address, port))


def _inside(options: Options, host: str, port: int | None) -> str:
    if options.external_addresses == "allow":
        return ""
    found = judged(host)
    admins = (its for name in found.spellings for admin, its in options.admin_addresses if admin == name)
    admin = ADMIN if any(port in (None, its) for its in admins) else ""
    return (found.what or admin) if found.addresses else (admin or found.what)


class Judged(NamedTuple):
    """A host.

    Its canonical name, the addresses that it denotes, its form for comparison, and what makes it internal.
    """

    name: str
    addresses: tuple[IpAddress, ...]
    spellings: tuple[str, ...]
    what: str


@lru_cache(maxsize=_JUDGED_KEPT)
def judged(host: str) -> Judged:
    """Return the properties of a host that follow from its notation."""
    name = canonical_host(host).rstrip(".")
    every = tuple(each for address in readings(name) for each in (address, *embedded_ips(address)))
    if not every:
        return Judged(name, (), (_short(name),), _named(name))
    found = (what for each in every for network, what in _REFUSED if each in network)
    return Judged(name, every, tuple(map(str, every)), next(found, ""))


def _named(name: str) -> str:
    """Return what makes a name internal, as far as the name itself shows it."""
    labels = name.split(".")
    if not _HOST.fits(name) or (len(labels) > 1 and NUMBER.fits(labels[-1])):
        return _NO_HOST
    zones = (_ZONES.get(".".join(labels[count:])) for count in range(max(0, len(labels) - _DEEPEST), len(labels)))
    return _NAMES.get(name) or next(filter(None, zones), "") or ("" if len(labels) > 1 else _SINGLE)


def _short(name: str) -> str:
    """Return a name; for a Service, without the domain of the cluster."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[2:3] == ["svc"] else name


def _listed(internal: InternalAddresses, host: str, port: int | None) -> str:
    """Return what a host is that the operator listed as internal; empty if it is not listed."""
    if internal.is_empty:
        return ""
    found = judged(host)
    if found.addresses:
        listed = internal.has_network_of(found.addresses) or internal.has_address(found.addresses, port)
    else:
        listed = internal.has_name(found.name, port)
    return INTERNAL if listed else ""
