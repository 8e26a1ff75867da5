"""ApisixGlobalRule → global rule.

A gateway accepts a plugin in one global rule only (contract: Admin API fact 14), so the oldest object that enables it
wins. The others are published without it: if their previous record stayed, the gateway would reject the plugin of the
winner.
"""

from __future__ import annotations

from apisix_ingress.model import names
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import PLUGIN_INDEX
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.global_rule import ApisixGlobalRuleSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import is_ours
from translation.core.text_checks import check_object
from translation.plugins.configs import translate_plugins


def translate_global_rule(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the global rule of an ApisixGlobalRule, even if it has no plugins."""
    draft = Builder(obj.meta, view, options)
    name = names.object_name(draft.namespace, obj.meta.name)
    record_id = view.record_id("global_rules", name)
    draft.protect("global_rules", names=frozenset({name}))
    check_object(draft, obj)
    try:
        spec = parse_spec(ApisixGlobalRuleSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    plugins = translate_plugins(draft, spec.plugins, "spec.plugins")
    fields = {plugin.name: f"spec.plugins[{index}]" for index, plugin in enumerate(spec.plugins) if plugin.enable}
    for plugin, path in fields.items():
        owner = plugin_owner(view, options, plugin)
        if owner is not None and owner != obj.meta.key:
            contested(draft, plugin, path, owner)
            del plugins[plugin]
    draft.record("global_rules", name, {"id": record_id, "plugins": plugins})
    return draft.finish()


def plugin_owner(view: View, options: Options, plugin: str) -> ObjectKey | None:
    """Return the ApisixGlobalRule that owns a plugin: the oldest one in scope that enables it."""
    found = view.find(CustomObject, IndexKey("ApisixGlobalRule", PLUGIN_INDEX, plugin))
    claimants = (Claimant(item.meta.created, item.meta.key) for item in found if is_ours(item, view, options))
    oldest = min(claimants, default=None)
    return oldest.owner if oldest else None


def contested(draft: Builder, plugin: str, path: str, owner: ObjectKey) -> None:
    """Report a plugin that another object owns; for an object in another namespace, name only the namespace."""
    known = owner.namespace == draft.namespace or not draft.namespace
    whose = str(owner) if known else f"an {owner.kind} in namespace {owner.namespace}"
    message = (
        f"plugin {plugin} is skipped: {whose} already sets it, and APISIX allows a plugin in one global rule only;"
        " remove one"
    )
    draft.degrade("Conflicted", path, message)
