"""Backends of an Ingress for ingress-nginx that do not exist: as with ingress-nginx, their paths respond with 503."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
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
