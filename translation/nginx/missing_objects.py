"""Objects that the spec of an Ingress for ingress-nginx names and that do not exist, with the effect."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret, Service
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.view import View
from translation.ingress_spec import IngressSpec, ServiceBackend
from translation.nginx.effects.balancing.backends import port_number
from translation.upstreams.backends import without_port


def missing_backends(namespace: str, spec: IngressSpec, view: View, *, is_canary: bool = False) -> Iterator[Problem]:
    """Yield the Services and ports that do not exist, each at the first path that names it."""
    effect = "the canary gets no requests" if is_canary else "its paths respond with 503, as with ingress-nginx"
    named: set[ServiceBackend] = set()
    for path, backend in spec.services():
        if backend in named:
            continue
        named.add(backend)
        key = ObjectKey("Service", namespace, backend.name)
        service, port = view.get(Service, key), backend.port
        if service is None:
            message = f"{key} does not exist; create it or correct the name"
            yield Problem("ServiceNotFound", f"{message}. Until then, {effect}", f"{path}.name")
        elif not port_number(service, port):
            message = without_port(service, port.number or port.name)
            yield Problem("PortNotFound", f"{message}; correct the port. Until then, {effect}", f"{path}.port")


def missing_certificates(namespace: str, spec: IngressSpec, view: View) -> Iterator[Problem]:
    """Yield the Secrets of certificates that do not exist."""
    for index, entry in enumerate(spec.tls):
        key = ObjectKey("Secret", namespace, entry.secret_name)
        if entry.secret_name and view.get(Secret, key) is None:
            effect = "Until then, clients get the default certificate, as with ingress-nginx"
            message = f"{key} does not exist; create it or correct the name. {effect}"
            yield Problem("SecretNotFound", message, f"spec.tls[{index}].secretName")
