"""Filters of type ExtensionRef → the plugin config of a route record, or its plugins if a rule refers to several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apisix_ingress.model import names
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from crds.gateway.common import LocalReference
from translation.core.builder import Builder
from translation.core.scope import class_is_ours, in_scope
from translation.gateway.entry.matching import abort
from translation.gateway.routes.backends import Invalid
from translation.plugin_config import plugins_of
from translation.plugins.configs import Plugins

PLUGIN_CONFIGS = (("apisix.apache.org", "ApisixPluginConfig"), ("apisix.apache.org", "PluginConfig"))
"""Group and kind of the objects that a filter may refer to."""


def extend(draft: Builder, body: dict[str, Any], references: Sequence[LocalReference], path: str) -> list[Invalid]:
    """Add what filters refer to; if one of them cannot be used, requests get 500. Return the invalid references.

    A record has one plugin config, so the plugins of several become plugins of the record. A later plugin replaces an
    earlier one with the same name, and plugins of other filters replace both, as they do with a plugin config.
    """
    found = [_config(draft, each, path) for each in references]
    configs = [each for each in found if isinstance(each, CustomObject)]
    invalid = [each for each in found if isinstance(each, Invalid)]
    if len(found) == 1 and configs:
        body["plugin_config_id"] = _id(draft, configs[0].meta.key)
    elif not invalid and found:
        plugins: Plugins = {}
        for config in configs:
            invalid += _collect(draft, config, plugins, path)
        body["plugins"] = plugins | body.get("plugins", {})
    if invalid:
        body.pop("upstream_id", None)
        body["plugins"] = abort(500)["plugins"]
    return invalid


def _config(draft: Builder, reference: LocalReference, path: str) -> CustomObject | Invalid:
    """Return the object of this controller that a filter refers to."""
    if (reference.group, reference.kind) not in PLUGIN_CONFIGS:
        what = f"{reference.group}/{reference.kind} is not supported"
        return Invalid("InvalidKind", f"{what}; refer to an ApisixPluginConfig or PluginConfig", path)
    key = ObjectKey(reference.kind, draft.namespace, reference.name)
    found = draft.custom(key)
    # A PluginConfig has no class.
    is_ours = found and (RESOURCES[key.kind].record_prefix or class_is_ours(found, draft.view, draft.options))
    if found is None or not is_ours or not in_scope(key.namespace, draft.view, draft.options):
        return Invalid("BackendNotFound", f"{key} does not exist, or belongs to another controller", path)
    return found


def _id(draft: Builder, key: ObjectKey) -> str:
    name = names.object_name(key.namespace, key.name, RESOURCES[key.kind].record_prefix)
    return draft.refer("plugin_configs", name)


def _collect(draft: Builder, config: CustomObject, plugins: Plugins, path: str) -> Iterator[Invalid]:
    """Add the plugins of an object; yield why it cannot be used. It is translated once for all records of a route."""
    key = config.meta.key
    if key not in draft.plugin_configs:
        scope = draft.within(key.kind, key.namespace)
        draft.plugin_configs[key] = plugins_of(scope, config) or {}, scope
        draft.references |= scope.references
        draft.destinations |= scope.destinations
        if draft.is_full:
            draft.adopt(scope, path, key)
    found, scope = draft.plugin_configs[key]
    wrong = next((each for each in scope.problems if each.severity == "error"), None)
    if wrong is not None:
        yield Invalid("UnsupportedValue", f"{key}: {wrong}", path)
    plugins |= found
