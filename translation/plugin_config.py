"""ApisixPluginConfig, PluginConfig of 2.x → plugin config; ApisixConsumerGroup → consumer group.

Routes and consumers that refer to the id are not translated again.
"""

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
    """Return the record of the plugins of an object: a plugin config or a consumer group."""
    draft = Builder(obj.meta, view, options)
    row = RESOURCES[obj.meta.kind]
    (kind,) = row.record_names
    name = names.object_name(obj.meta.namespace, obj.meta.name, row.record_prefix)
    body = draft.new_body(kind, name, labelled=True)
    draft.protect(kind, names=frozenset({name}))
    plugins = plugins_of(draft, obj)
    if plugins is not None:
        draft.record(kind, name, body | {"plugins": plugins})
    return draft.finish()


def plugins_of(scope: Context, obj: CustomObject) -> Plugins | None:
    """Return the plugins of an object of these kinds, or None if its spec is invalid; problems go to `scope`."""
    check_object(scope, obj)
    try:
        ((plugins, path, _),) = parse_spec("ApisixPluginConfig", obj.spec).plugin_lists()
    except SpecError as error:
        scope.report_invalid_spec(error)
        return None
    return translate_plugins(scope, plugins, path)
