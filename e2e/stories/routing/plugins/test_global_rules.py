"""Stories of settings for a whole gateway: global rules, monitoring and plugin metadata, which have no labels."""

import json
import operator
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.story import Stage, put_paths, route, says
from e2e.traffic import RequestLoop

HAND_MADE = {"plugins": {"ip-restriction": {"blacklist": ["192.0.2.1"]}}}
METADATA = "metadata"
EXCHANGED = (("a", "gzip"), ("b", "request-id"))


def setting(value: str, header: str = "X-Rule") -> dict[str, Any]:
    """Return a plugin of an ApisixGlobalRule that sets a header of each response."""
    return {"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {header: value}}}}


def plain(name: str) -> dict[str, Any]:
    """Return a plugin of an ApisixGlobalRule with its defaults."""
    return {"name": name, "enable": True}


def global_rule(name: str, *plugins: Mapping[str, Any]) -> Manifest:
    return custom("ApisixGlobalRule", name, plugins=list(plugins))


def custom(kind: str, name: str, **spec: Any) -> Manifest:
    return {"apiVersion": "apisix.apache.org/v2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def config_map(cluster: str, plugins: Mapping[str, Mapping[str, Any]]) -> Manifest:
    """Return the ConfigMap with the metadata of plugins."""
    listed = [{"name": name, "metadata": metadata} for name, metadata in plugins.items()]
    data = {"config.yaml": json.dumps([{"cluster": cluster, "plugins": listed}])}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": METADATA}, "data": data}


class LedgerHarness:
    """An environment whose controller has its own ledger."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.cluster = f"east-{stage.mark}"
        self.controller_name = f"rules-{stage.mark}"

    def start(self) -> Controller:
        source = f"{self.stage.namespace}/{METADATA}"
        kubernetes = {"controller_name": self.controller_name, "plugin_metadata": source}
        gateways = {self.cluster: self.stage.gateway}
        return self.stage.start(gateways, kubernetes=kubernetes, sync={"audit_interval": "1s"})

    def rules(self) -> list[list[str]]:
        """Return the plugins of each global rule of the gateway."""
        return sorted(sorted(each["plugins"]) for each in self.stage.gateway.records("global_rules").values())

    def until_rules(self, *want: list[str]) -> None:
        wait_until(self.rules, lambda got: got == sorted(want), f"the global rules {want}")

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of each plugin, without what the gateway adds."""
        added = {"id", "create_time", "update_time"}
        found = self.stage.gateway.records("plugin_metadata")
        return {name: {key: each[key] for key in each.keys() - added} for name, each in found.items()}

    def ledger(self) -> list[str]:
        """Return the records that the ledger names."""
        found = self.stage.api.find("ConfigMap", f"{self.controller_name}-ledger", namespace="default")
        return list(json.loads((found or {}).get("data", {}).get(self.cluster, "[]")))

    def until_header(self, value: str | None, path: str = "/", header: str = "x-rule") -> None:
        self.stage.traffic.until(lambda answer: answer.headers.get(header) == value, self.stage.host, path)

    def until_said(self, kind: str, name: str, status: str, *words: str) -> None:
        namespace = self.stage.namespace
        self.stage.api.wait(kind, name, says(status, *words), f"to say {status}", namespace=namespace)


@pytest.fixture
def harness(stage: Stage) -> Iterator[LedgerHarness]:
    found = LedgerHarness(stage)
    yield found
    stage.api.delete("ConfigMap", f"{found.controller_name}-ledger", namespace="default")


def takeovers(controller: Controller) -> list[dict[str, Any]]:
    return controller.events("cluster.takeover")


def start_again(controller: Controller) -> Mapping[str, Any]:
    """Start a stopped controller and return the result of its takeover."""
    before = len(takeovers(controller))
    controller.start()
    return wait_until(lambda: takeovers(controller), lambda got: len(got) > before, "its takeover")[-1]


def test_a_global_rule_applies_to_every_route_until_it_is_disabled_or_deleted(harness: LedgerHarness) -> None:
    stage = harness.stage
    harness.start()
    stage.serve()
    stage.apply([route(stage.host, name=name, path=f"/{name}") for name in ("a", "b")])
    stage.apply(global_rule("rule", setting("one")))
    for path in ("/a", "/b", "/nowhere"):
        harness.until_header("one", path)
    assert stage.traffic.until_status(200, stage.host, "/a").pod == "web"
    harness.until_said("ApisixGlobalRule", "rule", "True")
    stage.apply(global_rule("rule", setting("two")))
    harness.until_header("two", "/a")
    stage.apply(global_rule("rule", {**setting("two"), "enable": False}))
    harness.until_header(None, "/a")
    stage.apply(global_rule("rule", setting("three")))
    harness.until_header("three", "/b")
    stage.api.delete("ApisixGlobalRule", "rule", namespace=stage.namespace)
    harness.until_header(None, "/b")
    harness.until_rules()
    wait_until(harness.ledger, lambda got: got == [], "an empty ledger")


def test_the_older_of_two_rules_with_one_plugin_wins_until_it_is_deleted(harness: LedgerHarness) -> None:
    stage = harness.stage
    harness.start()
    stage.apply(global_rule("a-old", setting("old")))
    harness.until_header("old")
    stage.apply(global_rule("b-young", setting("young"), {"name": "cors", "enable": True}))
    harness.until_said("ApisixGlobalRule", "b-young", "False", "response-rewrite", "a-old")
    harness.until_rules(["response-rewrite"], ["cors"])
    stage.api.delete("ApisixGlobalRule", "a-old", namespace=stage.namespace)
    harness.until_header("young")
    harness.until_said("ApisixGlobalRule", "b-young", "True")
    harness.until_rules(["cors", "response-rewrite"])


def test_rules_that_exchange_plugins_while_no_controller_runs_keep_their_others_in_force(
    harness: LedgerHarness,
) -> None:
    stage, own = harness.stage, {"a": setting("kept"), "b": plain("cors")}
    controller = harness.start()
    stage.serve()
    stage.apply([route(stage.host), *(global_rule(name, own[name], plain(each)) for name, each in EXCHANGED)])
    stage.traffic.until_status(200, stage.host)
    harness.until_rules(["gzip", "response-rewrite"], ["cors", "request-id"])
    controller.stop()
    stage.apply(
        [
            global_rule(name, own[name], plain(each))
            for (name, _), (_, each) in zip(EXCHANGED, EXCHANGED[::-1], strict=True)
        ]
    )
    # Long enough for requests in every intermediate state.
    stage.gateway.add_fault("delay", method="PUT", path=".*global_rules.*", delay=0.2)
    with RequestLoop(stage.traffic, stage.host) as requests:
        start_again(controller)
        harness.until_rules(["request-id", "response-rewrite"], ["cors", "gzip"])
    got = {
        (each.headers.get("x-rule"), each.headers.get("access-control-allow-origin")) for _, each in requests.answers
    }
    assert got == {("kept", "*")}


def test_monitoring_of_a_cluster_config_is_a_global_rule_of_its_cluster(harness: LedgerHarness) -> None:
    stage, kind = harness.stage, "ApisixClusterConfig"
    harness.start()
    try:
        monitoring = {"prometheus": {"enable": True, "prefer_name": True}}
        stage.api.apply(custom(kind, harness.cluster, monitoring=monitoring))
        harness.until_rules(["prometheus"])
        harness.until_said(kind, harness.cluster, "True")
        stage.api.apply(custom(kind, harness.cluster, monitoring={"prometheus": {"enable": False}}))
        harness.until_rules()
        stage.api.apply(custom(kind, harness.cluster, monitoring=monitoring))
        harness.until_rules(["prometheus"])
    finally:
        stage.api.delete(kind, harness.cluster)
    harness.until_rules()


def test_plugin_metadata_follows_its_config_map(harness: LedgerHarness) -> None:
    stage = harness.stage
    stage.apply(config_map(harness.cluster, {"http-logger": {"log_format": {"host": "$host"}}, "datadog": {"port": 1}}))
    harness.start()
    want: dict[str, Any] = {"http-logger": {"log_format": {"host": "$host"}}, "datadog": {"port": 1}}
    wait_until(harness.metadata, lambda got: got == want, "both")
    stage.apply(config_map(harness.cluster, {"http-logger": {"log_format": {"at": "$time_iso8601"}}}))
    want = {"http-logger": {"log_format": {"at": "$time_iso8601"}}}
    wait_until(harness.metadata, lambda got: got == want, "one, changed")
    stage.apply({**config_map(harness.cluster, {}), "data": {"config.yaml": "- cluster: ["}})
    events = partial(stage.api.events, METADATA, namespace=stage.namespace)
    wait_until(events, lambda got: any("is not YAML in line" in each["message"] for each in got), "an Event")
    assert harness.metadata() == want
    stage.api.delete("ConfigMap", METADATA, namespace=stage.namespace)
    wait_until(harness.metadata, lambda got: got == {}, "none")


def test_plugin_metadata_follows_a_cluster_config_while_the_controller_runs(harness: LedgerHarness) -> None:
    stage, by_hand = harness.stage, {"datadog": {"port": 8125}}
    stage.gateway.put("/plugin_metadata/datadog", by_hand["datadog"])
    harness.start()
    first = {"http-logger": {"log_format": {"host": "$host"}}, "csrf": {"key": "x"}}
    second = {"http-logger": {"log_format": {"host": "$hostname"}}}
    try:
        for plugins in (first, second, {}):
            stage.api.apply(custom("ApisixClusterConfig", harness.cluster, pluginMetadata=plugins))
            wait_until(harness.metadata, partial(operator.eq, plugins | by_hand), "the metadata")
    finally:
        stage.api.delete("ApisixClusterConfig", harness.cluster)


def test_a_restart_writes_nothing_and_foreign_records_survive(harness: LedgerHarness) -> None:
    stage = harness.stage
    stage.gateway.put("/global_rules/by-hand", HAND_MADE)
    stage.gateway.put("/plugin_metadata/datadog", {"port": 8125})
    stage.apply([global_rule("rule", setting("one")), config_map(harness.cluster, {"http-logger": {"log_format": {}}})])
    controller = harness.start()
    harness.until_rules(["ip-restriction"], ["response-rewrite"])
    wait_until(harness.metadata, lambda got: got.keys() == {"datadog", "http-logger"}, "the metadata")
    assert len(harness.ledger()) == 2
    written = len(stage.gateway.write_log())
    assert controller.stop() == 0
    takeover = start_again(controller)
    assert (takeover["upserts"], takeover["deletes"], takeover["owned"]) == (0, 0, 2)
    assert put_paths(stage.gateway, written) == []
    stage.api.delete("ApisixGlobalRule", "rule", namespace=stage.namespace)
    stage.api.delete("ConfigMap", METADATA, namespace=stage.namespace)
    harness.until_rules(["ip-restriction"])
    wait_until(harness.metadata, lambda got: got == {"datadog": {"port": 8125}}, "the metadata by hand")


def test_objects_deleted_while_no_controller_ran_are_withdrawn_by_the_next(harness: LedgerHarness) -> None:
    stage = harness.stage
    stage.gateway.put("/global_rules/by-hand", HAND_MADE)
    stage.apply([global_rule("rule", setting("one")), config_map(harness.cluster, {"http-logger": {"log_format": {}}})])
    controller = harness.start()
    harness.until_header("one")
    wait_until(harness.metadata, bool, "the metadata")
    assert controller.stop() == 0
    stage.api.delete("ApisixGlobalRule", "rule", namespace=stage.namespace)
    stage.api.delete("ConfigMap", METADATA, namespace=stage.namespace)
    assert start_again(controller)["deletes"] == 2
    harness.until_rules(["ip-restriction"])
    wait_until(harness.metadata, lambda got: got == {}, "no metadata")
    wait_until(harness.ledger, lambda got: got == [], "an empty ledger")


def test_a_gateway_without_a_ledger_is_adopted_without_a_write(harness: LedgerHarness) -> None:
    stage = harness.stage
    stage.apply(global_rule("rule", setting("one")))
    controller = harness.start()
    harness.until_header("one")
    assert controller.stop() == 0
    stage.api.delete("ConfigMap", f"{harness.controller_name}-ledger", namespace="default")
    written = len(stage.gateway.write_log())
    assert start_again(controller)["upserts"] == 0
    wait_until(harness.ledger, lambda got: len(got) == 1, "the rule to be noted")
    assert put_paths(stage.gateway, written) == []
    stage.api.delete("ApisixGlobalRule", "rule", namespace=stage.namespace)
    harness.until_rules()


def test_a_rule_is_not_written_before_the_ledger_names_it(harness: LedgerHarness) -> None:
    stage = harness.stage
    controller = harness.start()
    # The existing object cannot be a ledger: every write to it is rejected.
    name = f"{harness.controller_name}-ledger"
    blocked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "immutable": True}
    stage.api.apply(blocked, namespace="default")
    stage.apply(global_rule("rule", setting("one")))
    harness.until_said("ApisixGlobalRule", "rule", "False", "the ledger cannot be written")
    stage.serve()
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    assert harness.rules() == []
    stage.api.delete("ConfigMap", name, namespace="default")
    harness.until_header("one")
    harness.until_said("ApisixGlobalRule", "rule", "True")
    assert controller.stop() == 0
