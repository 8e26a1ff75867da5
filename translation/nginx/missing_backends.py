"""Backends of an Ingress for ingress-nginx that do not exist: as with ingress-nginx, their paths respond with 503."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.view import View
from translation.core.options import Options
from translation.ingress_spec import Backend, IngressSpec
from translation.nginx.effects.balancing.backends import port_number
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import parsed

_EFFECT = "its paths respond with 503, as with ingress-nginx"


def missing_backends(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Iterator[Problem]:
    """Yield the Services and ports that do not exist, and backends without a Service."""
    spec = parsed(item, view, options, nginx).spec
    for path, backend in _backends(spec) if spec else ():
        if backend.service is None:
            if backend.resource is None:
                yield Problem("InvalidSpec", f"names no Service: {_EFFECT}", path)
            continue
        name, port = backend.service.name, backend.service.port
        key = ObjectKey("Service", item.meta.namespace, name)
        service = view.get(Service, key)
        full = f"{key.namespace}/{name}"
        if service is None:
            yield Problem("ServiceNotFound", f"Service {full} does not exist: {_EFFECT}", f"{path}.service.name")
        elif not port_number(service, port):
            named = port.number or port.name
            why = f"Service {full} has no port {named}" if named else f"no port of Service {full} is given"
            yield Problem("PortNotFound", f"{why}: {_EFFECT}", f"{path}.service.port")


def _backends(spec: IngressSpec) -> Iterator[tuple[str, Backend]]:
    if spec.default_backend:
        yield "spec.defaultBackend", spec.default_backend
    for number, rule in enumerate(spec.rules):
        for index, path in enumerate(rule.http.paths if rule.http else ()):
            yield f"spec.rules[{number}].http.paths[{index}].backend", path.backend
