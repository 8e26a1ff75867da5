"""The checks of `doctor` on gateways, and its document."""

from collections.abc import Mapping
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.gateway_state import Counts, SeenGateway
from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.collect.live_records import Snapshot
from apisix_ingress.diagnostics.doctor.api_server import clock_check
from apisix_ingress.diagnostics.doctor.check import fail, ok, warn
from apisix_ingress.diagnostics.doctor.gateways import check_gateway
from apisix_ingress.diagnostics.doctor.permissions import Right, needed_rights
from apisix_ingress.diagnostics.doctor.report import doctor_document, doctor_lines, refused_settings
from apisix_ingress.errors import ConfigError
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import owner_labels
from apisix_ingress.model.records import Record
from apisix_ingress.settings import ClusterSettings, Settings
from apisix_ingress.state.world import Report, World
from apisix_ingress.webhook.schemas.book import SchemaBook, compile_subsystem
from apisix_ingress.wiring.options import translation_options
from providers.core.registry import resources
from tests.factories import make_claimant, make_custom, make_key, make_record

OURS = {"labels": owner_labels("apisix-ingress")}
CLUSTER = ClusterSettings.model_validate({"admin_url": "http://gateway/admin", "admin_key": "a-key-of-this-test"})
OPTIONS = translation_options(Settings())


def seen(world: World, bodies: Mapping[RecordKey, Any], **fields: Any) -> SeenGateway:
    """Return a gateway with records."""
    gateway = SeenGateway("default", CLUSTER.admin_url, world.desired)
    gateway.snapshot = Snapshot(
        "default", gateway.url, "apisix-ingress", bodies, **{"version": "APISIX/3.18.0", **fields}
    )
    gateway.listing = gateway.snapshot.listing()
    gateway.latency, gateway.skew, gateway.book = 0.01, 0.0, SchemaBook()
    return gateway


def checked(gateway: SeenGateway, world: World | None = None, cluster: ClusterSettings = CLUSTER) -> dict[str, str]:
    """Return the level of each check."""
    inventory = Inventory(world, OPTIONS) if world is not None else None
    return {check.name: check.level for check in check_gateway(gateway, cluster, inventory)}


def wanting(*records: Record) -> World:
    """Return a world in which one object desires records."""
    world = World(resources(OPTIONS))
    world.desired.replace(make_claimant(), records)
    return world


def test_a_healthy_gateway_passes_every_check() -> None:
    assert set(checked(seen(wanting(), {}), wanting()).values()) == {"OK"}


@pytest.mark.parametrize(
    ("version", "level"),
    [("APISIX/3.18.0", "OK"), ("APISIX/3.2.0", "OK"), ("APISIX/2.15.3", "WARN"), ("", "SKIP"), ("Python/3.11", "SKIP")],
)
def test_an_old_gateway_is_warned_about(version: str, level: str) -> None:
    assert checked(seen(wanting(), {}, version=version))["gateway default version"] == level


def test_a_slow_gateway_and_a_wrong_clock_are_warned_about() -> None:
    gateway = seen(wanting(), {})
    gateway.latency, gateway.skew = 3.0, -60.0
    got = checked(gateway)
    assert (got["gateway default"], got["gateway default clock"]) == ("WARN", "WARN")
    words = clock_check("clock", "x", 30.0).message
    assert words == "the clock of x is 30 s ahead of this machine's"


def test_a_gateway_without_a_key_is_warned_about() -> None:
    open_one = CLUSTER.model_copy(update={"admin_key": type(CLUSTER.admin_key)("")})
    assert checked(seen(wanting(), {}), cluster=open_one)["gateway default key"] == "WARN"


def test_a_gateway_that_could_not_be_read_fails() -> None:
    gateway = SeenGateway("default", CLUSTER.admin_url, None)
    gateway.trouble = "no response"
    assert checked(gateway) == {"gateway default": "FAIL"}
    assert (gateway.counts(), gateway.record_state(RecordKey("routes", "1")).kind) == (Counts(), "unreachable")


def test_stream_routes_fail_if_stream_mode_is_off() -> None:
    world = wanting(make_record("tcp", kind="stream_routes"))
    off = seen(world, {}, disabled=frozenset({"stream_routes"}))
    assert checked(off, world)["gateway default streams"] == "FAIL"
    assert checked(seen(world, {}), world)["gateway default streams"] == "OK"


def test_a_plugin_that_is_not_enabled_fails_and_the_nearest_is_named() -> None:
    world = wanting()
    plugins = [{"name": "limit-cuont", "enable": True}, {"name": "off", "enable": False}]
    spec = {"http": [{"name": "a", "match": {"paths": ["/"]}, "plugins": plugins}]}
    item = make_custom(spec=spec)
    world.stores["ApisixRoute"].set(item)
    world.reports[item.meta.key] = Report(1)
    gateway = seen(world, {})
    gateway.book = SchemaBook(http=compile_subsystem({"limit-count": {"schema": {}}, "cors": {"schema": {}}}))
    (check,) = (each for each in check_gateway(gateway, CLUSTER, Inventory(world, OPTIONS)) if "plugins" in each.name)
    assert (check.level, "limit-cuont is used by ApisixRoute default/web" in check.message) == ("FAIL", True)
    assert check.fix.startswith("did you mean limit-count?")
    gateway.book = None
    assert checked(gateway, world)["gateway default plugins"] == "SKIP"


def test_records_are_counted_by_how_they_are() -> None:
    same, other, gone = (make_record(name, body={**OURS, "uri": "/a"}) for name in ("same", "other", "gone"))
    never = Record(RecordKey("routes", "never"), "never", {"uri": "/"}, existing_only=True)
    held = {same.key: same.body, other.key: {**other.body, "uri": "/b"}, RecordKey("routes", "stray"): OURS}
    theirs = {RecordKey("routes", "theirs"): {"uri": "/"}, RecordKey("global_rules", "rule"): {"plugins": {}}}
    gateway = seen(wanting(same, other, gone, never), held | theirs)
    assert gateway.counts() == Counts(wanted=3, there=1, differing=1, missing=1, extra=1, foreign=2)
    assert gateway.record_state(RecordKey("routes", "theirs")).kind == "rejected"
    assert gateway.record_state(never.key).kind == "applied"


def test_rights_follow_the_settings() -> None:
    every = needed_rights(Settings(), "apisix")
    assert {Right("", "secrets", "list"), Right("coordination.k8s.io", "leases", "create", "apisix")} <= every
    silent = Settings.model_validate({"kubernetes": {"status": {"publish_service": ""}}})
    assert not any(right.resource == "ingresses/status" for right in needed_rights(silent, "apisix"))
    few = {"watch_namespaces": ["shop"], "status": {"enabled": False}, "election": {"enabled": False}}
    small = needed_rights(Settings.model_validate({"kubernetes": few}), "apisix")
    assert {right.namespace for right in small if right.resource == "secrets"} == {"shop"}
    assert not {"leases", "events", "apisixroutes/status"} & {right.resource for right in small}


def test_the_plugin_metadata_needs_one_config_map_and_no_other() -> None:
    some = Settings.model_validate({"kubernetes": {"plugin_metadata": "shop/plugins"}})
    got = needed_rights(some, "apisix") - needed_rights(Settings(), "apisix")
    assert got == {Right("", "configmaps", verb, "shop", "plugins") for verb in ("list", "watch")}


def test_a_permission_reads_as_in_a_role() -> None:
    want = "get leases.coordination.k8s.io leader in namespace apisix"
    assert str(Right("coordination.k8s.io", "leases", "get", "apisix", "leader")) == want
    assert str(Right("", "secrets", "list")) == "list secrets"


def test_the_document_is_healthy_unless_something_fails() -> None:
    found = [ok("a", "fine"), warn("b", "odd", "mend it")]
    assert doctor_document(found)["healthy"] is True
    document = doctor_document([*found, fail("c", "broken", "repair it")])
    assert document["healthy"] is False
    assert list(doctor_lines(document)) == [
        "OK   a: fine",
        "WARN b: odd",
        "     fix: mend it",
        "FAIL c: broken",
        "     fix: repair it",
        "1 FAIL, 1 WARN, 1 OK",
    ]


def test_settings_that_are_refused_fail_line_by_line() -> None:
    assert [check.message for check in refused_settings(ConfigError("one\ntwo"))] == ["one", "two"]


def test_an_inventory_lists_winners_and_owners() -> None:
    world = wanting(make_record("a"))
    inventory = Inventory(world, OPTIONS)
    (key,) = inventory.winners()
    assert (inventory.owner_of(key), inventory.owner_of(RecordKey("routes", "x"))) == (make_key(), None)
