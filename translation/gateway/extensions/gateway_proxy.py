"""GatewayProxy of 2.x: addresses for the status of a Gateway, and the gateways of a class or Gateway.

`translation.targets` determines the gateways. The plugins and the plugin metadata become records of these gateways.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.gateways import GatewaySpec
from crds.v1alpha1.extensions import GatewayProxySpec
from crds.v2.common import Plugin
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome, Published
from translation.gateway.parsing import spec_of
from translation.plugin_metadata import metadata_records
from translation.plugins.configs import translate_plugins
from translation.published_addresses import proxy_addresses
from translation.targets import InvalidTarget, cluster_of, is_used, target_in

_WITHOUT_PROVIDER = "use an ApisixGlobalRule and spec.pluginMetadata of an ApisixClusterConfig instead"
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
    if proxy.provider is None and (any(each.enabled for each in proxy.plugins) or proxy.plugin_metadata):
        return Parameters(f"{key}: spec.plugins and spec.pluginMetadata need spec.provider; {_WITHOUT_PROVIDER}")
    every = proxy_addresses(key, gateway.namespace, view)
    return Parameters(addresses=tuple(("IPAddress" if is_ip(each) else "Hostname", each) for each in every or ()))


def translate_gateway_proxy(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the gateways of a GatewayProxy that a class or Gateway refers to, with their plugins and metadata."""
    draft = Builder(obj.meta, view, options)
    name = obj.meta.key.place
    draft.protect("global_rules", names=frozenset({name}))
    try:
        spec, target = spec_of(obj, GatewayProxySpec), target_in(obj.meta.key, view)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    except InvalidTarget as error:
        draft.error("InvalidParameters", "spec.provider", str(error))
        return draft.finish()
    if target is None or not options.gateway_proxies or not is_used(obj.meta.key, view):
        return NOTHING
    plugins = [Plugin(name=each.name, enable=each.enabled, config=each.config or {}) for each in spec.plugins]
    if found := translate_plugins(draft, plugins, "spec.plugins"):
        record_id = view.record_id("global_rules", name)
        draft.record("global_rules", name, {"id": record_id, "plugins": found})
    for record in metadata_records(draft, spec.plugin_metadata):
        draft.add(record)
    outcome = draft.finish()
    if not isinstance(outcome, Published):
        return outcome
    cluster = frozenset({cluster_of(target, options)})
    records = tuple(replace(record, clusters=cluster) for record in outcome.records)
    return outcome._replace(records=records, target=None if cluster <= options.clusters else target)
