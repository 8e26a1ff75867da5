"""Options: the settings of the ingress-nginx provider, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from apisix_ingress.model.keys import ObjectKey

CONTROLLER = "k8s.io/ingress-nginx"
PREFIX = "nginx.ingress.kubernetes.io"
INGRESS_CLASS = "nginx"


@dataclass(frozen=True, slots=True)
class NginxOptions:
    """The flags of ingress-nginx.

    Attributes:
        config_map: The ConfigMap of ingress-nginx, or None.
        default_backend: The Service for requests that match no path; None means 404.
        default_certificate: The Secret with the certificate of hosts without one, or None.
        controller_class: `spec.controller` of the IngressClasses to serve.
        ingress_class: The class in the annotation `kubernetes.io/ingress.class`.
        watch_without_class: Whether Ingresses without a class are served.
        disable_catch_all: Whether Ingresses with only a default backend are ignored.
        tcp_services: The ConfigMap with TCP ports, or None.
        udp_services: The ConfigMap with UDP ports, or None.
        strict: Whether a path with a snippet is closed even if the snippet only tunes performance.
        lean: Whether behaviour is given up that costs gateways much: `tables.config_map.LEAN`.
        update_status: Whether the addresses of gateways are written to the status of the Ingresses.
        prefix: The prefix of annotations.
        compact: Whether routes are merged and plugins replaced, for gateways; manifests need a route per branch.
        seed: Secret seed of the key of the self-signed certificate.
    """

    config_map: ObjectKey | None = None
    default_backend: ObjectKey | None = None
    default_certificate: ObjectKey | None = None
    controller_class: str = CONTROLLER
    ingress_class: str = INGRESS_CLASS
    watch_without_class: bool = False
    disable_catch_all: bool = False
    tcp_services: ObjectKey | None = None
    udp_services: ObjectKey | None = None
    strict: bool = True
    lean: bool = False
    update_status: bool = False
    prefix: str = PREFIX
    compact: bool = True
    seed: bytes = field(default=b"", repr=False)


KIND = "NginxHost"
"""The kind of the owner of a host's records; there are no objects of this kind."""

CATCH_ALL = "_"
"""The host of rules without one: nginx's name for that server."""


def host_key(host: str) -> ObjectKey:
    """Return the key of a host: the owner of its records."""
    return ObjectKey(KIND, "", host)
