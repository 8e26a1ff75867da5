"""Records of manifests as a gateway would have them that rejects some of their plugins."""

from __future__ import annotations

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.diagnostics.reports.rejected_offline import with_rejections
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.problem import Problem
from tests.unit.translation.objects import OPTIONS, make, rule, service


def test_routes_of_a_rejected_plugin_config_and_of_a_rejected_object_are_closed() -> None:
    plugins = [{"name": "cors", "enable": True, "config": {}}]
    objects = [
        service(),
        make("ApisixPluginConfig", "shared", spec={"plugins": plugins}),
        make("ApisixRoute", "uses", spec={"http": [rule(plugin_config_name="shared")]}),
        make("ApisixRoute", "own", spec={"http": [rule(match={"paths": ["/own"]})]}),
        make("ApisixRoute", "fine", spec={"http": [rule(match={"paths": ["/fine"]})]}),
    ]
    decoded = (RESOURCES[item["kind"]].decode(item) for item in objects)
    outcome = settle([item for item in decoded if item is not None], OPTIONS)
    wrong, odd = Problem("PluginUnknown", "unknown plugin", "spec"), Problem("PluginDisabled", "off", "spec", "warning")
    shared, own, fine = (
        ObjectKey(kind, "default", name)
        for kind, name in (("ApisixPluginConfig", "shared"), ("ApisixRoute", "own"), ("ApisixRoute", "fine"))
    )

    records, unapplied = with_rejections(outcome, [(shared, wrong), (own, wrong), (fine, odd)])

    names = {record.key: record.name for record in outcome.records}
    assert sorted(names[key] for key in unapplied) == ["default_own_rule", "default_uses_rule"]
    closed = [names[key] for key, body in records.items() if "fault-injection" in body.get("plugins", {})]
    assert sorted(closed) == ["default_own_rule", "default_uses_rule"]
