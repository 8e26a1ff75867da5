"""ApisixPluginConfig → plugin config. Routes name its id and are not translated again when it changes."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.kube import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from translation.context import Options
from translation.draft import Draft
from translation.plugins import translate_plugins
from translation.result import Translation
from translation.texts import check_object


def translate_plugin_config(obj: CustomObject, view: View, options: Options) -> Translation:
    """Return the plugin config of an ApisixPluginConfig."""
    draft = Draft(obj.meta, view, options)
    name = names.object_name(obj.meta.namespace, obj.meta.name)
    body = draft.stamp("plugin_configs", name, labelled=True)
    draft.hold("plugin_configs", names=frozenset({name}))
    check_object(draft, obj)
    try:
        spec = parse_spec("ApisixPluginConfig", obj.spec)
    except SpecError as error:
        draft.misfit(error)
        return draft.finish()
    draft.record("plugin_configs", name, body | {"plugins": translate_plugins(draft, spec.plugins, "spec.plugins")})
    return draft.finish()
