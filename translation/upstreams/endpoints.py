"""Endpoints of a Service as its objects list them: EndpointSlices, or Endpoints if configured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import SLICES_BY_SERVICE
from apisix_ingress.model.objects import Endpoint, EndpointPort, Endpoints, EndpointSlice
from apisix_ingress.state.view import View
from translation.core.options import Options

Listed = tuple[Sequence[Endpoint], Sequence[EndpointPort], str]
"""Endpoints with the same ports, those ports, and their address type; empty if each address determines it."""


def listed_endpoints(view: View, options: Options, service: ObjectKey) -> Iterator[Listed]:
    """Yield the endpoints of a Service with what they have in common."""
    if options.endpoint_source == "endpoints":
        found = view.get(Endpoints, ObjectKey("Endpoints", service.namespace, service.name))
        for subset in found.subsets if found else ():
            yield subset.endpoints, subset.ports, ""
        return
    index = IndexKey("EndpointSlice", SLICES_BY_SERVICE, f"{service.namespace}/{service.name}")
    for item in view.find(EndpointSlice, index):
        yield item.endpoints, item.ports, item.address_type
