"""Stories about a failing Admin API; a proxy in front of it records the writes, their senders and results.

Rows of docs/reliability.md name the tests. Measurements are recorded, never asserted.
"""

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from trustme import CA, LeafCert

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults import checks, dumps
from e2e.faults.figures import note
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.story import Stage, route, says
from e2e.traffic import RequestLoop

CONCURRENCY = 16
BREAKER = "apisix_ingress_controller_breaker_open"
HELD = "apisix_ingress_controller_mass_delete_held"
DRIFT = "apisix_ingress_controller_drift_repaired_total"
MANY = 12


class Proxies:
    """The proxies of a story; its controllers are stopped before them."""

    def __init__(self, stage: Stage, folder: Path, stack: ExitStack) -> None:
        self._stage, self._folder, self._stack = stage, folder, stack

    def before(self, gateway: DevGateway, name: str = "admin", *, tls: ssl.SSLContext | None = None) -> AdminProxy:
        """Start a proxy in front of a gateway."""
        proxy = AdminProxy(gateway.admin_url, gateway.admin_key, self._folder, name=name, tls=tls)
        self._stack.enter_context(proxy)
        return proxy


@pytest.fixture
def proxies(stage: Stage, tmp_path: Path) -> Iterator[Proxies]:
    with ExitStack() as stack:
        yield Proxies(stage, tmp_path, stack)
        for controller in stage.controllers:
            controller.stop()


def many(stage: Stage, version: str, *, number: int = MANY) -> list[Manifest]:
    """Return routes whose paths contain their version."""
    return [route(stage.host, name=f"web-{each}", path=f"/{version}/{each}") for each in range(number)]


def paths(gateway: DevGateway) -> set[str]:
    """Return the paths of all routes."""
    return {body["uris"][0] for body in gateway.records("routes").values()}


def wait_paths(gateway: DevGateway, routes: list[Manifest], what: str) -> float:
    """Wait until a gateway has exactly these routes; return the seconds that it took."""
    began = time.monotonic()
    want = {item["spec"]["http"][0]["match"]["paths"][0] for item in routes}
    wait_until(lambda: paths(gateway), lambda got: got == want, what)
    return time.monotonic() - began


FAULTS: dict[str, list[dict[str, Any]]] = {
    "5xx": [{"action": "status", "status": 502, "share": 0.3}],
    "429": [{"action": "status", "status": 429, "retry_after": 1, "share": 0.3}],
    "reset": [{"action": "drop", "share": 0.3}],
    "lost replies": [{"action": "drop_reply", "share": 0.3}],
    "half answers": [{"action": "half", "share": 0.3}],
    "errors only": [{"action": "status", "status": 503}],
    "slow": [{"action": "delay", "seconds": 3}],
}


def test_faults_of_one_cluster_leave_the_other_alone_and_it_catches_up(stage: Stage, proxies: Proxies) -> None:
    away = stage.another_gateway()
    good, bad = proxies.before(stage.gateway, "good"), proxies.before(away, "bad")
    own = stage.start({"good": good, "bad": bad}, sync={"timeout": "2s"})
    stage.serve()
    stage.apply(many(stage, "begin"))
    for gateway in (stage.gateway, away):
        wait_paths(gateway, many(stage, "begin"), "every route")
    with RequestLoop(stage.traffic, stage.host, "/kept", pause=0.1) as loop:
        stage.apply(route(stage.host, name="kept", path="/kept"))
        stage.traffic.until_status(200, stage.host, "/kept")
        loop.answers.clear()
        for name, rules in FAULTS.items():
            _fault_round(stage, good, bad, away, name, rules)
        _outage_round(stage, own, good, bad, away)
    assert loop.failures == []
    for proxy in (good, bad):
        assert checks.dangling(proxy.entries()) == checks.forced(proxy.entries()) == []
    assert {event["cluster"] for event in own.events("cluster.unreachable")} == {"bad"}
    wait_until(lambda: own.metric(BREAKER, cluster="bad"), lambda got: got == 0, "the breaker to close")
    assert own.metric(BREAKER, cluster="good") == 0


def _fault_round(
    stage: Stage, good: AdminProxy, bad: AdminProxy, away: DevGateway, name: str, rules: list[dict[str, Any]]
) -> None:
    """Edit every route while one cluster fails, then let it recover."""
    want = [*many(stage, name.replace(" ", "-")), route(stage.host, name="kept", path="/kept")]
    before, asked = len(good.writes()), len(bad.entries())
    bad.play(*rules)
    stage.apply(want)
    took = wait_paths(stage.gateway, want, f"the good cluster to have every route during {name}")
    assert len(good.writes()) - before == MANY, f"one write a route during {name}"
    wait_until(lambda: bad.entries(asked), lambda got: any(each.rule for each in got), f"a fault of {name}")
    # A slow gateway still processes requests that the controller has given up.
    assert name == "slow" or bad.most_in_flight <= CONCURRENCY + 1, "more than the writes and one list"
    bad.play()
    caught_up = wait_paths(away, want, f"the bad cluster to catch up after {name}")
    requests = len(bad.entries(asked))
    note("F-9", fault=name, good_s=round(took, 2), caught_up_s=round(caught_up, 2), requests=requests)


def _outage_round(stage: Stage, own: Controller, good: AdminProxy, bad: AdminProxy, away: DevGateway) -> None:
    """The same with a cluster that refuses connections: the circuit breaker opens and reports it."""
    want = [*many(stage, "down"), route(stage.host, name="kept", path="/kept")]
    wait_until(lambda: own.metric(BREAKER, cluster="bad"), lambda got: got == 0, "the breaker to close")
    seen = len(own.events("cluster.unreachable"))
    bad.stop()
    stage.apply(want)
    took = wait_paths(stage.gateway, want, "the good cluster to have every route")
    wait_until(lambda: own.metric(BREAKER, cluster="bad"), lambda got: got == 1, "the breaker to open")
    line = own.events("cluster.unreachable")[-1]
    assert (line["level"], line["cluster"]) == ("error", "bad")
    assert "Admin API is running and reachable" in line["remedy"]
    assert len(own.events("cluster.unreachable")) == seen + 1
    stage.wait_route(says("False", "cluster bad", "accepted by good"), "to name the cluster", "web-1")
    assert "cluster bad" in own.probe("/apisix/healthz")[1]
    bad.start()
    caught_up = wait_paths(away, want, "the bad cluster to catch up")
    stage.wait_route(says("True"), "to be in both", "web-1")
    note("F-9", fault="down", good_s=round(took, 2), caught_up_s=round(caught_up, 2))


def test_a_rotated_admin_key_is_reported_with_few_requests_and_the_new_one_is_used(
    stage: Stage, proxies: Proxies, kubeconfig: Path, tmp_path: Path
) -> None:
    proxy = proxies.before(stage.gateway)
    key = tmp_path / "admin-key"
    key.write_text(stage.gateway.admin_key)
    own = _keyed(stage, proxy, key, kubeconfig, tmp_path)
    with own, DevGateway(etcd=stage.gateway.etcd_url, admin_key="canary-of-the-rotated-key") as rotated:
        stage.serve()
        stage.apply(many(stage, "old"))
        wait_paths(stage.gateway, many(stage, "old"), "every route")
        stage.traffic.until_status(200, stage.host, "/old/1")
        proxy.lead_to(rotated.admin_url, rotated.admin_key)
        before = len(proxy.entries())
        stage.apply(many(stage, "new"))
        reported = stage.wait_route(
            says("False", "admin key", "clusters[0].admin_key_file"), "to name the key", "web-1"
        )
        wait_until(lambda: own.metric(BREAKER), lambda got: got == 1, "the cluster to be paused")
        assert stage.traffic.send(stage.host, "/old/1").status == 200
        (line,) = own.events("cluster.unauthorized")
        assert (line["level"], line["cluster"]) == ("error", "default")
        assert "admin_key" in line["error"]
        warnings = wait_until(lambda: _warnings(stage, "web-1", "admin key"), bool, "an Event")
        refused = proxy.entries(before)
        key.write_text(rotated.admin_key)
        took = wait_paths(rotated, many(stage, "new"), "every route to be written with the new key")
        stage.wait_route(says("True"), "to be synced", "web-1")
        # Writes that were in flight when the first one was rejected, and at most one probe.
        assert {entry.status for entry in refused} == {401}
        assert len(refused) <= CONCURRENCY + 1
        shown = own.process.log.read_text() + json.dumps(reported) + json.dumps(warnings)
        assert [each for each in (stage.gateway.admin_key, rotated.admin_key) if each in shown] == []
    note("F-10", refused_requests=len(refused), new_key_to_all_written_s=round(took, 2))


def _warnings(stage: Stage, about: str, words: str) -> list[str]:
    events = stage.api.events(about, namespace=stage.namespace)
    return [each["message"] for each in events if each["type"] == "Warning" and words in each["message"]]


def _keyed(stage: Stage, proxy: AdminProxy, key: Path, kubeconfig: Path, folder: Path) -> Controller:
    """Return a controller that reads its admin key from a file."""
    own = Controller(
        folder,
        name="keyed",
        kubeconfig=kubeconfig,
        gateways={"default": proxy},
        kubernetes={"namespace_selector": stage.selector, "election": {"name": f"lease-{stage.mark}"}},
    )
    settings = yaml.safe_load(own.config.read_text())
    del settings["clusters"][0]["admin_key"]
    settings["clusters"][0]["admin_key_file"] = str(key)
    own.config.write_text(yaml.safe_dump(settings))
    return own


def test_a_crash_between_an_upstream_and_its_route_causes_no_second_write(stage: Stage, proxies: Proxies) -> None:
    proxy = proxies.before(stage.gateway)
    own = stage.start({"default": proxy}, kubernetes={"election": {"enabled": False}})
    stage.serve()
    # The controller knows the pod by then: the upstream is written once, with its node.
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    stage.api.delete("ApisixRoute", "web", namespace=stage.namespace)
    wait_until(lambda: stage.gateway.records("upstreams"), lambda got: got == {}, "no record")
    rule = {"match": {"path": ".*/upstreams/.*", "method": "PUT"}, "action": "kill_after", "times": 1}
    proxy.play({**rule, "pid": own.process.pid})
    stage.apply(route(stage.host))
    wait_until(lambda: own.process.pid, lambda pid: pid is None, "the crash")
    assert stage.traffic.send(stage.host).status == 404
    before = len(proxy.entries())
    own.start()
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    (written,) = proxy.writes(before)
    assert (written.method, written.record.partition("/")[0], written.status) == ("PUT", "routes", 201)
    (upstream,) = stage.gateway.records("upstreams")
    assert written.refs == [f"upstreams/{upstream}"]


def test_a_restored_older_backup_is_repaired_and_records_of_others_stay(
    stage: Stage, proxies: Proxies, tmp_path: Path
) -> None:
    proxy = proxies.before(stage.gateway)
    own = stage.start({"default": proxy}, sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply(many(stage, "old", number=40))
    wait_paths(stage.gateway, many(stage, "old", number=40), "every route")
    stage.gateway.put(
        "/routes/theirs", {"uris": ["/theirs"], "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}}}
    )
    backup = dumps.take(stage.gateway.admin_url, stage.gateway.admin_key)
    dumps.save(backup, tmp_path / "backup.json")
    want = [*many(stage, "new", number=30), route(stage.host, name="kept", path="/kept")]
    stage.apply(want)
    for each in range(30, 40):
        stage.api.delete("ApisixRoute", f"web-{each}", namespace=stage.namespace)
    theirs = route("theirs", path="/theirs")
    wait_paths(stage.gateway, [*want, theirs], "every edit")
    proxy.play({"action": "restore", "file": str(tmp_path / "backup.json"), "times": 1})
    wait_until(proxy.entries, lambda got: any(each.rule == "restore" for each in got), "the backup to be restored")
    took = wait_paths(stage.gateway, [*want, theirs], "every edit again")
    stage.traffic.until_status(200, stage.host, "/kept")
    own_view = {name: body for name, body in stage.gateway.records("routes")["theirs"].items() if "time" not in name}
    assert own_view == {n: b for n, b in backup["routes"]["theirs"].items() if "time" not in n}
    assert [entry for entry in proxy.writes() if entry.record == "routes/theirs"] == []
    wait_until(lambda: own.metric(DRIFT), lambda got: got > 0, "the drift to be counted")
    line = own.events("audit.drift")[-1]
    assert (line["level"], "who has the admin key" in line["remedy"]) == ("warning", True)
    assert own.events("deletes.held_back") == []
    note("F-13", records=len(want), restored_backup_to_right_s=round(took, 2))


def test_a_sweep_that_would_empty_the_gateway_is_held_back_with_a_remedy(stage: Stage, proxies: Proxies) -> None:
    proxy = proxies.before(stage.gateway)
    own = stage.start({"default": proxy}, sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply(many(stage, "v", number=30))
    wait_paths(stage.gateway, many(stage, "v", number=30), "every route")
    stage.wait_route(says("True"), "to be synced", "web-29")
    stage.traffic.until_status(200, stage.host, "/v/29")
    assert own.stop() == 0
    for each in range(1, 30):
        stage.api.delete("ApisixRoute", f"web-{each}", namespace=stage.namespace)
    before = len(proxy.entries())
    own.start()
    (line,) = wait_until(lambda: own.events("deletes.held_back"), bool, "the sweep to be held")
    wait_until(lambda: own.metric(HELD), lambda got: got == 1, "the metric to say so")
    assert (line["level"], line["cluster"], line["deletes"], line["owned"]) == ("error", "default", 29, 31)
    assert len(line["first"]) == 5
    assert "delete these records through the Admin API" in line["remedy"]
    stage.apply(route(stage.host, name="new", path="/new"))
    stage.traffic.until_status(200, stage.host, "/new")
    assert stage.traffic.send(stage.host, "/v/29").status == 200
    assert [entry.method for entry in proxy.writes(before)] == ["PUT"]
    for id_, body in stage.gateway.records("routes").items():
        if body["uris"][0] not in ("/v/0", "/new"):
            stage.gateway.call("DELETE", f"/routes/{id_}")
    wait_until(lambda: own.metric(HELD), lambda got: got == 0, "the hold to end")
    assert len(own.events("deletes.held_back")) == 1
    assert stage.traffic.send(stage.host, "/v/0").status == 200


def test_a_renewed_client_certificate_and_authority_are_used_without_a_restart(
    stage: Stage, proxies: Proxies, kubeconfig: Path, tmp_path: Path
) -> None:
    files = {name: tmp_path / f"{name}.pem" for name in ("ca_file", "cert_file", "key_file")}
    proxy = proxies.before(stage.gateway, tls=_issue(files))
    own = Controller(
        tmp_path,
        name="mutual",
        kubeconfig=kubeconfig,
        gateways={"default": proxy},
        kubernetes={"namespace_selector": stage.selector, "election": {"name": f"lease-{stage.mark}"}},
    )
    settings = yaml.safe_load(own.config.read_text())
    settings["clusters"][0]["tls"] = {name: str(path) for name, path in files.items()}
    own.config.write_text(yaml.safe_dump(settings))
    # Not started by `stage`, which does not support the settings above.
    with own:
        stage.serve()
        stage.apply(route(stage.host, path="/old"))
        stage.traffic.until_status(200, stage.host, "/old")
        pid, (first,) = own.process.pid, {entry.certificate for entry in proxy.entries()}
        before = len(proxy.entries())
        proxy.lead_to(stage.gateway.admin_url, stage.gateway.admin_key, tls=_issue(files))
        began = time.monotonic()
        stage.apply(route(stage.host, path="/new"))
        stage.traffic.until_status(200, stage.host, "/new")
        took = time.monotonic() - began
        # The proxy records a request at its end, shortly after the gateway serves the change.
        (second,) = wait_until(
            lambda: {entry.certificate for entry in proxy.entries(before)}, bool, "the proxy to note the write"
        )
        assert first
        assert second not in ("", first)
        assert own.process.pid == pid
        stage.wait_route(says("True"), "to be synced")
    note("F-19", change_to_served_s=round(took, 2))


def _issue(files: dict[str, Path]) -> ssl.SSLContext:
    """Write a client certificate of a new authority, and return the TLS context of a server of the same authority."""
    authority = CA()
    client, server = authority.issue_cert("controller"), authority.issue_cert("127.0.0.1")
    _replace(files["ca_file"], authority.cert_pem.bytes())
    _replace(files["cert_file"], _chain(client))
    _replace(files["key_file"], client.private_key_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _chain(leaf: LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in leaf.cert_chain_pems)


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(path)
