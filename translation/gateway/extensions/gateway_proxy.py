"""GatewayProxy: the parameters of a Gateway in 2.x.

Only its addresses are used: the gateways and their admin keys are settings of the controller, which may serve several
Gateways. Its plugins and other settings of gateways are not accepted, rather than ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.gateways import GatewaySpec
from crds.v1alpha1.extensions import GatewayProxySpec
from translation.gateway.parsing import spec_of

_GROUP, _KIND = "apisix.apache.org", "GatewayProxy"


class Parameters(NamedTuple):
    """The parameters of a Gateway.

    Attributes:
        refusal: Why they cannot be used, or empty.
        addresses: Type and value of the addresses that its status shows, if they are set.
    """

    refusal: str = ""
    addresses: tuple[tuple[str, str], ...] = ()


def proxy_of(gateway: ObjectKey, spec: GatewaySpec, view: View) -> Parameters:
    """Return the parameters of a Gateway."""
    reference = spec.infrastructure.parameters_ref
    if reference is None:
        return Parameters()
    if (reference.group, reference.kind) != (_GROUP, _KIND):
        return Parameters(f"{reference.group}/{reference.kind} is not supported; remove it")
    key = ObjectKey(_KIND, gateway.namespace, reference.name)
    found = view.get(CustomObject, key)
    if found is None:
        return Parameters(f"{key} does not exist; create it or remove the reference")
    try:
        proxy = spec_of(found, GatewayProxySpec)
    except SpecError as error:
        return Parameters(f"{key}: {error}")
    if any(each.enabled for each in proxy.plugins):
        return Parameters(f"{key}: spec.plugins is not supported; create an ApisixGlobalRule and remove it")
    if proxy.plugin_metadata:
        return Parameters(f"{key}: spec.pluginMetadata is not supported; use kubernetes.plugin_metadata and remove it")
    every = dict.fromkeys(proxy.status_address)
    return Parameters(addresses=tuple(("IPAddress" if is_ip(each) else "Hostname", each) for each in every))
