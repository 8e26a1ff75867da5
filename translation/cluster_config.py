"""ApisixClusterConfig → the global rule, the plugin metadata and the address of the gateway cluster with the same name.

The rule contains the monitoring plugins. An ApisixGlobalRule applies to every cluster, so a plugin that one enables is
not repeated here. `wiring.clusters` applies the address.
"""

from __future__ import annotations

from apisix_ingress.model.admin_address import (
    HEADER_VALUE,
    PUBLISHED_KEY,
    PUBLISHED_KEYS,
    AdminAddress,
    check_admin_url,
)
from apisix_ingress.model.json import JsonObject, mapping_in
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.records import Record
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.cluster_config import Admin, ApisixClusterConfigSpec, Monitoring
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome
from translation.global_rule import contested, plugin_owner
from translation.plugin_metadata import metadata_records
from translation.plugins.configs import Plugins


def translate_cluster_config(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the global rule, if a plugin is enabled, and the plugin metadata of the cluster with this name."""
    name = obj.meta.name
    if name not in options.clusters:
        return NOTHING
    draft = Builder(obj.meta, view, options)
    record_id = view.record_id("global_rules", name)
    draft.protect("global_rules", names=frozenset({name}))
    draft.protect("plugin_metadata", ids=frozenset(mapping_in(obj.spec.get("pluginMetadata"))))
    try:
        spec = parse_spec(ApisixClusterConfigSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    plugins = _uncontested(draft, _plugins(spec.monitoring)) if spec.monitoring else {}
    if spec.admin:
        _check_admin(draft, spec.admin)
    if plugins:
        body: JsonObject = {"id": record_id, "plugins": plugins}
        draft.add(Record(RecordKey("global_rules", record_id), name, body, clusters=frozenset({name})))
    for record in metadata_records(draft, spec.plugin_metadata, frozenset({name})):
        draft.add(record)
    return draft.finish()


def admin_address(obj: CustomObject) -> AdminAddress | None:
    """Return the Admin API address in a valid object; None if the address in the settings applies."""
    admin = parse_spec(ApisixClusterConfigSpec, obj.spec).admin
    return AdminAddress(check_admin_url(admin.base_url), admin.admin_key) if admin else None


def _check_admin(draft: Builder, admin: Admin) -> None:
    try:
        check_admin_url(admin.base_url)
    except ValueError as error:
        draft.error("AdminUrlInvalid", "spec.admin.baseURL", str(error))
    if not HEADER_VALUE.fullmatch(admin.admin_key):
        message = (
            "contains a space, line break or other character that is invalid in an HTTP header; write only the key"
        )
        draft.error("AdminKeyInvalid", "spec.admin.adminKey", message)
    elif admin.admin_key in PUBLISHED_KEYS:
        note = draft.warn if draft.options.published_keys == "allow" else draft.error
        note("AdminKeyPublished", "spec.admin.adminKey", PUBLISHED_KEY)


def _plugins(monitoring: Monitoring) -> Plugins:
    plugins: Plugins = {}
    prometheus, skywalking = monitoring.prometheus, monitoring.skywalking
    if prometheus and prometheus.enable:
        plugins["prometheus"] = {"prefer_name": True} if prometheus.prefer_name else {}
    if skywalking and skywalking.enable:
        ratio = skywalking.sample_ratio
        plugins["skywalking"] = {} if ratio is None else {"sample_ratio": ratio}
    return plugins


def _uncontested(draft: Builder, plugins: Plugins) -> Plugins:
    """Return the plugins that no ApisixGlobalRule enables."""
    kept: Plugins = {}
    for plugin, config in plugins.items():
        owner = plugin_owner(draft.view, draft.options, plugin)
        if owner is None:
            kept[plugin] = config
        else:
            contested(draft, plugin, f"spec.monitoring.{plugin}", owner)
    return kept
