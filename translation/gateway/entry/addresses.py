"""Addresses of Gateways: with `gateway_api.address_pool` each Gateway has its own address, which its routes match.

Gateways keep the address in their status. Among Gateways without one the oldest chooses first. A Gateway without an
accepted listener has none: it serves nothing, and others need the address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import EVERY
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.gateways import Address, GatewaySpec
from translation.core.options import Options
from translation.gateway.entry.acceptance import ADDRESS_TYPES
from translation.gateway.entry.listeners import entry_of
from translation.gateway.entry.owned import is_our_gateway
from translation.gateway.parsing import spec_of


@dataclass(frozen=True, slots=True)
class Assigned:
    """The address of a Gateway.

    Attributes:
        value: From the pool; empty without a pool, or if every address is assigned.
        unusable: Why the Gateway cannot have an address that it requests, or empty.
    """

    value: str = ""
    unusable: str = ""


def address_of(gateway: CustomObject, spec: GatewaySpec, view: View, options: Options) -> Assigned:
    """Return the address of a Gateway."""
    if not options.gateway_addresses:
        return Assigned(unusable=next(_unusable(spec, options, ""), ""))
    value = _assigned(view, options).get(gateway.meta.key, "")
    return Assigned(value, next(_unusable(spec, options, value), ""))


def _unusable(spec: GatewaySpec, options: Options, assigned: str) -> Iterator[str]:
    """Yield why the Gateway cannot have addresses that it requests."""
    for address in _requested(spec):
        if address.value in options.gateway_addresses:
            if address.value != assigned:
                yield f"address {address.value} is not available: another Gateway may have it; remove or change it"
        elif address.value and address.value not in options.published_addresses:
            yield (
                f"address {address.value} is neither in gateway_api.address_pool nor a published address; "
                "use one of them"
            )


def _requested(spec: GatewaySpec) -> Iterator[Address]:
    return (address for address in spec.addresses if address.type in ADDRESS_TYPES)


def _assigned(view: View, options: Options) -> dict[ObjectKey, str]:
    """Return the address of every Gateway: first static ones, then those in a status, then free ones."""
    every = (each for each in view.find(CustomObject, IndexKey("Gateway", EVERY, "")))
    found = (each for each in every if is_our_gateway(each, view, options) and _may_serve(each, view, options))
    ours = sorted(found, key=lambda each: each.meta.age)
    free = dict.fromkeys(options.gateway_addresses)
    result: dict[ObjectKey, str] = {}
    for wanted in (_static, _shown):
        for gateway in ours:
            value = next((each for each in wanted(gateway) if each in free), "")
            if value and gateway.meta.key not in result:
                result[gateway.meta.key] = value
                del free[value]
    for gateway in ours:
        if gateway.meta.key not in result and free:
            result[gateway.meta.key] = next(iter(free))
            del free[result[gateway.meta.key]]
    return result


def _may_serve(gateway: CustomObject, view: View, options: Options) -> bool:
    """Return whether a listener of a Gateway is accepted; one that cannot be read keeps what it had."""
    try:
        entry = entry_of(gateway, view, options)
    except SpecError:
        return True
    return any(not entry.refusal(each)[0] for each in entry.listeners)


def _static(gateway: CustomObject) -> Iterator[str]:
    try:
        spec = spec_of(gateway, GatewaySpec)
    except SpecError:
        return
    yield from (address.value for address in _requested(spec) if address.value)


def _shown(gateway: CustomObject) -> Iterator[str]:
    for each in list_in(gateway.status.get("addresses")):
        value = mapping_in(each).get("value")
        if isinstance(value, str):
            yield value
