"""PluginConfig → plugin config, which filters of HTTPRoutes and GRPCRoutes refer to."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v1alpha1.extensions import PluginConfigSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.plugins.configs import translate_plugins

PREFIX = "PluginConfig"
"""`record_prefix` of the kind: an ApisixPluginConfig of the same name has another record."""


def translate_route_plugins(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the plugin config of a PluginConfig."""
    draft = Builder(obj.meta, view, options)
    name = names.object_name(obj.meta.namespace, obj.meta.name, PREFIX)
    body = draft.new_body("plugin_configs", name, labelled=True)
    draft.protect("plugin_configs", names=frozenset({name}))
    check_object(draft, obj)
    try:
        spec = parse_spec(PluginConfigSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    draft.record("plugin_configs", name, body | {"plugins": translate_plugins(draft, spec.plugins, "spec.plugins")})
    return draft.finish()
