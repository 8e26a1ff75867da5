"""Options: the settings of the ingress-nginx provider, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from apisix_ingress.model.keys import ObjectKey

CONTROLLER = "k8s.io/ingress-nginx"
PREFIX = "nginx.ingress.kubernetes.io"
INGRESS_CLASS = "nginx"


@dataclass(frozen=True, slots=True)
class NginxOptions:
    """What the flags of ingress-nginx say.

    Attributes:
        config_map: The ConfigMap of ingress-nginx, or None.
        default_backend: The Service that answers what no path takes, or None: 404.
        default_certificate: The Secret with the certificate of hosts that have none, or None.
        controller_class: `spec.controller` of the IngressClasses that are served.
        ingress_class: The class that Ingresses name in the annotation `kubernetes.io/ingress.class`.
        watch_without_class: Whether Ingresses without a class are served.
        disable_catch_all: Whether Ingresses that only have a default backend are left out.
        update_status: Whether the addresses of gateways are written to the status of the Ingresses.
        prefix: Of annotations.
        seed: What the key of the certificate is derived from that hosts without one have; never shown.
    """

    config_map: ObjectKey | None = None
    default_backend: ObjectKey | None = None
    default_certificate: ObjectKey | None = None
    controller_class: str = CONTROLLER
    ingress_class: str = INGRESS_CLASS
    watch_without_class: bool = False
    disable_catch_all: bool = False
    update_status: bool = False
    prefix: str = PREFIX
    seed: bytes = field(default=b"", repr=False)


KIND = "NginxHost"
"""The kind of the owner of a host's records: no object of it exists."""

CATCH_ALL = "_"
"""The host of rules without one, as nginx calls that server."""


def host_key(host: str) -> ObjectKey:
    """Return the key of a host: the owner of its records."""
    return ObjectKey(KIND, "", host)
