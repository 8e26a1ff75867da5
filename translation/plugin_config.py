"""ApisixPluginConfig, and PluginConfig of 2.x → plugin config. Routes that refer to its id are not translated again."""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.plugins.configs import Plugins, translate_plugins


def translate_plugin_config(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the plugin config of an ApisixPluginConfig or PluginConfig."""
    draft = Builder(obj.meta, view, options)
    name = names.object_name(obj.meta.namespace, obj.meta.name, RESOURCES[obj.meta.kind].record_prefix)
    body = draft.new_body("plugin_configs", name, labelled=True)
    draft.protect("plugin_configs", names=frozenset({name}))
    plugins = plugins_of(draft, obj)
    if plugins is not None:
        draft.record("plugin_configs", name, body | {"plugins": plugins})
    return draft.finish()


def plugins_of(scope: Context, obj: CustomObject) -> Plugins | None:
    """Return the plugins of an object of either kind, or None if its spec is invalid; problems go to `scope`."""
    check_object(scope, obj)
    try:
        ((plugins, path, _),) = parse_spec("ApisixPluginConfig", obj.spec).plugin_lists()
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None
    return translate_plugins(scope, plugins, path)
