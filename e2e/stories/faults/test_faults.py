"""Stories about temporary failures of an API server, a gateway, a key or a file, and the recovery."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

import crds
from e2e.cluster.client import wait_until
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.story import WRITES, Stage, put_paths, route, says, through
from e2e.traffic import RequestLoop


def test_a_killed_api_server_touches_no_gateway(stage: Stage, local_cluster: LocalCluster) -> None:
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply([route(stage.host), route(stage.host, name="other", path="/other")])
    stage.wait_route(says("True"), "to be synced")
    stage.wait_route(says("True"), "to be synced", "other")
    # The condition does not wait for addresses, which may be written separately.
    stage.traffic.until_status(200, stage.host)
    before = len(stage.gateway.write_log())
    with RequestLoop(stage.traffic, stage.host) as loop:
        local_cluster.kill_apiserver()
        wait_until(lambda: own.events("apiserver.unreachable"), bool, "it to notice")
        seen = len(loop.answers)
        wait_until(lambda: len(loop.answers), lambda got: got > seen + 100, "requests without an API server")
        local_cluster.start_apiserver()
        stage.api.delete("ApisixRoute", "other", namespace=stage.namespace)
        stage.apply(route(stage.host, name="new", path="/new"))
        stage.wait_route(says("True"), "to be synced", "new")
        wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == 2, "the deleted route to be gone")
    assert loop.failures == []
    assert own.process.pid is not None
    assert len(put_paths(stage.gateway, before)) == 2


@pytest.mark.parametrize("action", ["status", "reset", "drop_reply", "hang"])
def test_a_gateway_is_in_sync_after_temporary_failures(stage: Stage, action: str) -> None:
    own = stage.start(sync={"timeout": "1s"})
    stage.serve()
    number = 20
    stage.gateway.add_fault(action, method="PUT", path=".*/upstreams/.*", times=3, status=502)
    stage.gateway.add_fault(action, method="PUT", path=".*/routes/.*", times=25, status=502)
    stage.apply([route(stage.host, name=f"web-{each}", path=f"/{each}") for each in range(number)])
    for each in range(number):
        stage.wait_route(says("True"), "to be synced", f"web-{each}")
    names = Counter(body["name"] for body in stage.gateway.records("routes").values())
    assert names == Counter(f"{stage.namespace}_web-{each}_rule" for each in range(number))
    assert len(stage.gateway.records("upstreams")) == 1
    stage.traffic.until_status(200, stage.host, "/0")
    stage.gateway.add_fault(action, method="DELETE", times=12, status=503)
    for each in range(1, number):
        stage.api.delete("ApisixRoute", f"web-{each}", namespace=stage.namespace)
    wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == 1, "one route to be left")
    stage.gateway.clear_faults()
    before = len(stage.gateway.write_log())
    stage.apply(route(stage.host, name="web-0", path="/last"))
    stage.traffic.until_status(200, stage.host, "/last")
    stage.wait_route(says("True"), "to be synced", "web-0")
    later = [path for path in put_paths(stage.gateway, before) if path.startswith("/upstreams")]
    assert (later, len(stage.gateway.records("routes"))) == ([], 1)
    assert own.metric(WRITES, outcome="ok") > 0


def test_a_gateway_whose_lists_fail_at_the_start_is_not_swept(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    stage.apply([route(stage.host, name=name, path=f"/{name}") for name in ("one", "two")])
    stage.wait_route(says("True"), "to be synced", "one")
    stage.wait_route(says("True"), "to be synced", "two")
    stage.traffic.until_status(200, stage.host, "/one")
    assert own.stop() == 0
    before = len(stage.gateway.write_log())
    stage.gateway.add_fault("status", method="GET", path=".*/upstreams.*", status=500, times=3)
    with RequestLoop(stage.traffic, stage.host, "/one") as loop:
        own.start()
        wait_until(lambda: len(own.events("cluster.takeover")), lambda got: got == 2, "its takeover")
        stage.apply(route(stage.host, name="three", path="/three"))
        stage.traffic.until_status(200, stage.host, "/three")
    assert (len(put_paths(stage.gateway, before)), loop.failures) == (1, [])


def test_a_wrong_admin_key_is_logged_once_until_the_file_is_correct(
    stage: Stage, kubeconfig: Path, tmp_path: Path
) -> None:
    stage.serve()
    stage.apply(route(stage.host))
    key = tmp_path / "admin-key"
    key.write_text("not-the-key\n")
    own = Controller(
        tmp_path,
        name="keyed",
        kubeconfig=kubeconfig,
        gateways={"default": stage.gateway},
        kubernetes={"namespace_selector": stage.selector, "election": {"name": f"lease-{stage.mark}"}},
    )
    settings = yaml.safe_load(own.config.read_text())
    del settings["clusters"][0]["admin_key"]
    settings["clusters"][0]["admin_key_file"] = str(key)
    own.config.write_text(yaml.safe_dump(settings))
    with own:
        stage.wait_route(says("False", "admin key"), "to name the admin key")
        (line,) = own.events("cluster.unauthorized")
        assert (line["cluster"], line["level"]) == ("default", "error")
        assert "admin_key" in line["error"]
        assert own.probe("/readyz")[0] == 200
        assert stage.gateway.write_log() == []
        key.write_text(stage.gateway.admin_key + "\n")
        stage.traffic.until_status(200, stage.host)
        stage.wait_route(says("True"), "to be synced")
        assert len(own.events("cluster.unauthorized")) == len(own.events("cluster.recovered")) == 1
        log = own.process.log.read_text()
        assert ("not-the-key" in log, stage.gateway.admin_key in log) == (False, False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "manifests"
    made.mkdir()
    return made


@pytest.fixture
def filed(folder: Path, tmp_path: Path) -> Iterator[DevGateway]:
    """A gateway with a controller that reads its objects from `folder`."""
    with DevGateway() as gateway, Controller(tmp_path, gateways={"default": gateway}, manifests=folder):
        yield gateway


def manifest(path: str) -> str:
    external = {"externalNodes": [{"type": "Domain", "name": "127.0.0.1", "port": 1}]}
    upstream = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixUpstream",
        "metadata": {"name": "outside", "namespace": "default"},
        "spec": external,
    }
    item = route("files.example.org", path=path, backends=[], upstreams=[{"name": "outside"}])
    del item["spec"]["http"][0]["backends"]
    item["metadata"]["namespace"] = "default"
    # The response shows that the route matched; nothing listens on the node.
    item["spec"]["http"][0]["plugins"] = [
        {"name": "fault-injection", "enable": True, "config": {"abort": {"http_status": 218}}}
    ]
    return yaml.safe_dump_all([upstream, item])


def test_a_broken_manifest_keeps_the_last_good_one(filed: DevGateway, folder: Path) -> None:
    traffic, host, file = through(filed), "files.example.org", folder / "web.yaml"
    file.write_text(manifest("/one"))
    traffic.until_status(218, host, "/one")
    (folder / "second.yaml").write_text("kind: [unclosed\n")
    file.write_text("spec: {http: [\n")
    (folder / "third.yaml").write_text(manifest("/third").replace("name: web", "name: third"))
    traffic.until_status(218, host, "/third")
    assert traffic.send(host, "/one").status == 218
    file.write_text(manifest("/two"))
    traffic.until_status(218, host, "/two")
    traffic.until_status(404, host, "/one")
    file.unlink()
    traffic.until_status(404, host, "/two")
    assert traffic.send(host, "/third").status == 218


def test_crds_that_are_installed_after_the_start_are_picked_up(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster())
        api = stack.enter_context(cluster.client())
        gateway = stack.enter_context(DevGateway())
        own = Controller(tmp_path, kubeconfig=cluster.kubeconfig, gateways={"default": gateway})
        stack.callback(own.stop)
        own.start(wait=False)
        wait_until(lambda: own.events("cluster.takeover"), bool, "it to continue without the missing kinds")
        own.wait_ready()
        api.apply(crds.manifests())
        api.apply(manifest("/one"))
        through(gateway).until_status(218, "files.example.org", "/one")
        api.wait("ApisixRoute", "web", says("True"), "to be synced")
