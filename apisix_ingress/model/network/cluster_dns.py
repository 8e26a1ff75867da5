"""Names of the cluster domain: which Service or Pod a host name resolves to in a Pod.

A Pod has a search list (`<its namespace>.svc.<domain>`, `svc.<domain>`, `<domain>`), so `web.shop`, `web.shop.svc` and
`web.shop.svc.cluster.local` are one Service (Kubernetes: DNS for Services and Pods).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.network.ip_address import parse_ip

DEFAULT_DOMAIN = "cluster.local"

_DASHED_IPV4 = ValuePattern(r"[0-9]{1,3}(?:-[0-9]{1,3}){3}")


@dataclass(frozen=True, slots=True)
class ClusterName:
    """What a name of the cluster domain refers to.

    Attributes:
        namespace: Namespace of the Service or Pod; empty if a name in the domain refers to neither.
        service: Name of the Service; empty for a Pod address.
        address: The Pod's address in the name, or empty.
        is_sure: Whether the name is unambiguous. `web.shop` may also be a public name.
    """

    namespace: str = ""
    service: str = ""
    address: str = ""
    is_sure: bool = True


def shorten(name: str, domain: str) -> str:
    """Return a lower-case name without the domain of the cluster and without `svc` in front of it."""
    inner = name.removesuffix(f".{domain}") if domain else name
    head, _, last = inner.rpartition(".")
    return head if last == "svc" and "." in head else inner


def cluster_name(name: str, domain: str) -> ClusterName | None:
    """Return what a lower-case name refers to in the cluster; None for an external name or a single label."""
    inner = name.removesuffix(f".{domain}")
    labels = inner.split(".")
    if name == domain or (inner != name and len(labels) < 3):
        return ClusterName()
    if len(labels) >= 3 and labels[-1] == "svc":
        return ClusterName(labels[-2], labels[-3])
    if len(labels) >= 3 and labels[-1] == "pod":
        return ClusterName(labels[-2], address=_address(labels[-3]))
    if inner != name:
        return ClusterName()
    return _elsewhere(labels) or (ClusterName(labels[-1], labels[-2], is_sure=False) if len(labels) >= 2 else None)


def _elsewhere(labels: Sequence[str]) -> ClusterName | None:
    """Return what a name refers to that looks like a cluster name with another domain, e.g. `clusterset.local`."""
    for place in range(2, len(labels) - 1):
        above, below = labels[place - 1], labels[place - 2]
        if labels[place] == "svc":
            return ClusterName(above, below, is_sure=False)
        if labels[place] == "pod" and (address := _address(below)):
            return ClusterName(above, address=address)
    return None


def _address(label: str) -> str:
    """Return the address that the name of a Pod spells with dashes."""
    text = label.replace("-", "." if _DASHED_IPV4.fits(label) else ":")
    address = parse_ip(text)
    return "" if address is None else str(address)
