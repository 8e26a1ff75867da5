"""The day-2 commands against a real API server and a gateway, on a healthy installation and on broken ones."""

import asyncio
import json
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from trustme import CA

from apisix_ingress.diagnostics.doctor.permissions import needed_rights
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.settings import Settings, load_settings
from apisix_ingress.wiring.options import translation_options
from e2e.canary import Canaries, Search
from e2e.charts.chart import WITH_KEY, find, merged, nested, render
from e2e.charts.kinds import granted
from e2e.cluster.client import Manifest, wait_until
from e2e.stories.changes.test_ingress_status import ingress
from e2e.story import Stage, route, says
from tests.flow.commandline import Cli


@dataclass(frozen=True)
class Shell:
    """Runs commands with the configuration of a story's controller."""

    config: Path
    cli: Cli

    def __call__(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        where = ["--controller-namespace", "default"] if command not in ("tree", "translate", "replace-2x") else []
        return asyncio.run(self.cli.beside(command, *arguments, *where, "--config", str(self.config)))

    def json(self, command: str, *arguments: str) -> tuple[int, Any]:
        """Return the exit status and the document."""
        got = self(command, *arguments, "-o", "json")
        assert got.returncode in (0, 1), got.stderr
        return got.returncode, json.loads(got.stdout)

    def checks(self, *arguments: str) -> dict[str, list[tuple[str, str]]]:
        """Return the findings of doctor: name → level and message."""
        found: dict[str, list[tuple[str, str]]] = {}
        for check in self.json("doctor", *arguments)[1]["checks"]:
            found.setdefault(check["name"], []).append((check["level"], f"{check['message']} {check['fix']}"))
        return found


def named(reference: dict[str, str]) -> str:
    """Return the object of a reference as users write it."""
    return str(ObjectKey(**reference))


def shell(stage: Stage, folder: Path, **changes: Any) -> Shell:
    """Return a runner of commands with the settings of the story's controller, some of them changed."""
    settings = yaml.safe_load(stage.controllers[0].config.read_text())
    config = folder / "asked.yaml"
    config.write_text(yaml.safe_dump(merged(settings, changes)))
    return Shell(config, Cli(folder))


def levels(checks: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
    """Return the name of each check with its level; if a check has several findings, the level of the first."""
    return {name: found[0][0] for name, found in checks.items()}


def expiring(host: str) -> Manifest:
    """Return a Secret with a certificate that expires soon."""
    leaf = CA().issue_cert(host, not_after=datetime.now(UTC) + timedelta(days=3))
    pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "soon"}, "stringData": pair}


def well(stage: Stage) -> None:
    """Set up a route and an Ingress to a pod, and wait until requests come through."""
    stage.serve()
    stage.apply([route(stage.host), ingress(f"i.{stage.host}")])
    stage.start()
    stage.traffic.until_status(200, stage.host)
    stage.traffic.until_status(200, f"i.{stage.host}")
    stage.wait_route(says("True"), "to be well")


def test_every_command_reports_a_healthy_setup(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    ask = shell(stage, tmp_path)
    for kind in ("ApisixRoute", "Ingress"):
        # A separate process, as in a pipeline.
        arguments = ("wait", kind, f"{stage.namespace}/web", "--for=live", "--timeout", "20s")
        got = ask.cli(*arguments, "--controller-namespace", "default", "--config", str(ask.config))
        assert (got.returncode, got.stdout, got.stderr) == (0, f"{kind} {stage.namespace}/web is live\n", "")
    code, status = ask.json("status")
    assert (code, status["healthy"], status["items"], status["unread"]) == (0, True, [], [])
    assert status["leader"]["state"] == "held"
    (cluster,) = status["clusters"]
    assert cluster["records"] == {"wanted": 3, "there": 3, "differing": 0, "missing": 0, "extra": 0, "foreign": 0}
    assert status["objects"] == {
        "ApisixRoute": {"ok": 1, "failed": 0, "waiting": 0, "pending": 0},
        "Ingress": {"ok": 1, "failed": 0, "waiting": 0, "pending": 0},
    }
    got = ask("doctor")
    assert (got.returncode, "FAIL" in got.stdout) == (0, False), got.stdout
    assert "OK   crds: all 10 are installed" in got.stdout


def test_the_tree_shows_the_path_from_a_host_to_pods_with_owners(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    ask = shell(stage, tmp_path)
    code, tree = ask.json("tree", stage.host)
    (found,) = tree["hosts"]
    (path,) = found["paths"]
    (shown,) = path["routes"]
    (upstream,) = shown["upstreams"]
    (node,) = upstream["nodes"]
    pod = stage.pods.pods[0]
    assert (code, found["host"], path["path"]) == (0, stage.host, "/*")
    assert shown["record"].removeprefix("routes/") in stage.gateway.records("routes")
    assert (named(shown["owner"]), named(upstream["owner"])) == (
        f"ApisixRoute {stage.namespace}/web",
        f"Service {stage.namespace}/web",
    )
    assert named(node["pod"]) == f"Pod {stage.namespace}/{pod.name}"
    code, tree = ask.json("tree", "pods", f"{stage.namespace}/{pod.name}")
    assert (code, [each["host"] for each in tree["hosts"]]) == (0, sorted([stage.host, f"i.{stage.host}"]))
    assert f'(["{stage.host}"])' in ask("tree", "ar", f"{stage.namespace}/web", "--mermaid").stdout


def test_problems_are_reported_with_their_reasons(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    stage.apply(
        [
            route(f"b.{stage.host}", name="lost", service="absent"),
            route(f"p.{stage.host}", name="odd", plugins={"limit-cuont": {"count": 1}}),
            expiring(stage.host),
            {
                "apiVersion": "apisix.apache.org/v2",
                "kind": "ApisixTls",
                "metadata": {"name": "soon"},
                "spec": {"hosts": [stage.host], "secret": {"name": "soon", "namespace": stage.namespace}},
            },
        ]
    )
    stage.wait_route(says("False", "absent"), "to be refused", name="lost")
    stage.wait_route(says("False", "limit-cuont"), "to be refused", name="odd")
    stage.api.wait("ApisixTls", "soon", says("True"), "to be well", namespace=stage.namespace)
    ask = shell(stage, tmp_path)
    code, waited = ask.json("wait", "ar", f"{stage.namespace}/lost", "--timeout", "20s")
    assert (code, waited["outcome"]) == (1, "failed")
    assert "absent" in waited["message"]
    code, waited = ask.json("wait", "ar", f"{stage.namespace}/nobody", "--timeout", "500ms")
    assert (code, waited["outcome"], waited["reason"]) == (1, "timed out", "NotFound")
    code, status = ask.json("status")
    unwell = {named(each["object"]): each for each in status["items"]}
    assert code == 1
    assert unwell.keys() == {f"ApisixRoute {stage.namespace}/lost", f"ApisixRoute {stage.namespace}/odd"}
    assert "limit-cuont" in unwell[f"ApisixRoute {stage.namespace}/odd"]["message"]
    checks = ask.checks()
    ((level, words),) = checks["gateway default plugins"]
    assert (level, "limit-cuont" in words, "limit-count" in words) == ("FAIL", True, True)
    ((level, words),) = checks["certificates"]
    assert (level, f"{stage.namespace}/soon" in words) == ("WARN", True)


def test_an_ingress_that_names_an_absent_service_is_not_live(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    stage.apply(ingress(f"j.{stage.host}", "lost", service="absent"))
    code, waited = shell(stage, tmp_path).json("wait", "ing", f"{stage.namespace}/lost", "--timeout", "20s")
    assert (code, waited["outcome"], "absent" in waited["message"]) == (1, "failed", True)
    assert stage.traffic.send(f"j.{stage.host}").status == 404


def test_manual_edits_and_an_unreachable_gateway_are_reported(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    stage.controllers[0].stop()
    stage.gateway.put("/routes/foreign", {"uri": "/x", "upstream": {"nodes": {"127.0.0.1:1": 1}, "type": "roundrobin"}})
    (edited, *_) = (key for key in stage.gateway.records("routes") if key != "foreign")
    body = stage.gateway.records("routes")[edited]
    kept = {name: value for name, value in body.items() if not name.endswith("_time")}
    stage.gateway.put(f"/routes/{edited}", {**kept, "priority": 7})
    ask = shell(stage, tmp_path)
    code, status = ask.json("status")
    (cluster,) = status["clusters"]
    assert (code, cluster["in_sync"]) == (1, False)
    assert cluster["records"] == {"wanted": 3, "there": 2, "differing": 1, "missing": 0, "extra": 0, "foreign": 1}
    assert status["leader"]["state"] in ("free", "stale")
    assert levels(ask.checks())["leader"] == "FAIL"
    stage.gateway.stop()
    code, status = ask.json("status")
    assert (code, status["clusters"][0]["reachable"], status["clusters"][0]["records"]) == (1, False, None)
    assert levels(ask.checks())["gateway default"] == "FAIL"


def test_wait_continues_while_the_gateway_is_unreachable(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    ask = shell(stage, tmp_path)
    stage.gateway.stop()
    stage.apply(route(f"l.{stage.host}", name="late"))
    stage.wait_route(says("False", "Connection refused"), "to report the outage", name="late")
    unwell = {named(each["object"]): each["state"] for each in ask.json("status")[1]["items"]}
    assert unwell[f"ApisixRoute {stage.namespace}/late"] == "waiting"
    # A rejection would have ended it after three seconds.
    code, waited = ask.json("wait", "ar", f"{stage.namespace}/late", "--timeout", "4s")
    assert (code, waited["outcome"]) == (1, "timed out")
    assert "Connection refused" in waited["message"]
    stage.gateway.start()
    code, waited = ask.json("wait", "ar", f"{stage.namespace}/late", "--timeout", "30s")
    assert (code, waited["outcome"]) == (0, "live")
    assert stage.traffic.send(f"l.{stage.host}").status == 200


def test_a_wrong_key_and_an_unreachable_api_server_are_reported(stage: Stage, tmp_path: Path) -> None:
    well(stage)
    ask = shell(stage, tmp_path)
    ((level, words),) = ask.checks("--admin-key", "not-the-key-at-all")["gateway default"]
    assert (level, "admin key" in words) == ("FAIL", True)
    away = tmp_path / "away.yaml"
    config = yaml.safe_load(stage.controllers[0].config.read_text())["kubernetes"]["kubeconfig"]
    document = yaml.safe_load(Path(config).read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    away.write_text(yaml.safe_dump(document))
    checks = levels(ask.checks("--kubeconfig", str(away)))
    assert (checks["api-server"], checks["gateway default"]) == ("FAIL", "OK")
    for command in ("status", "bundle"):
        got = ask(command, "--kubeconfig", str(away))
        assert (got.returncode, got.stdout) == (2, "")
        assert got.stderr.startswith("error: API server 127.0.0.1:1: ")


def test_doctor_names_the_missing_permission_of_a_service_account(
    stage: Stage, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--cluster") != "local":
        pytest.skip("it makes roles for the whole cluster")
    well(stage)
    manifests = render(WITH_KEY, release=f"doc-{stage.mark}", namespace=stage.namespace)
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    applied = [each for each in manifests if each["kind"] in kinds]
    account = f"{stage.namespace}/{find(manifests, 'ServiceAccount')['metadata']['name']}"
    stage.api.apply(applied, strict=True)
    lease = yaml.safe_load(find(manifests, "ConfigMap")["data"]["config.yaml"])["kubernetes"]["election"]["name"]
    election = {"namespace": stage.namespace, "name": lease}
    own = {"controller_name": "apisix-ingress", "election": election}
    ask = shell(stage, tmp_path, kubernetes=own)
    # Here, its own namespace comes from the settings.
    arguments = ("doctor", "--config", str(ask.config), "--account", account)
    try:
        # The API server reads roles from a watch.
        wait_until(lambda: rights(ask, arguments)["level"], lambda got: got == "OK", "the roles to count")
        (binding,) = (each for each in applied if each["kind"] == "ClusterRoleBinding")
        stage.api.delete("ClusterRoleBinding", binding["metadata"]["name"])
        found = wait_until(lambda: rights(ask, arguments), lambda got: got["level"] != "OK", "the role to be gone")
        assert (found["level"], "list " in found["message"]) == ("FAIL", True)
    finally:
        for each in applied:
            if each["kind"].startswith("ClusterRole"):
                stage.api.delete(each["kind"], each["metadata"]["name"])


def rights(ask: Shell, arguments: Sequence[str]) -> Any:
    """Return the check of permissions."""
    _, document = asyncio.run(ask.cli.json(*arguments))
    (found,) = (check for check in document["checks"] if check["name"] == "rights")
    return found


CHARTS: Mapping[str, Mapping[str, Any]] = {
    "defaults": {},
    "multi-tenant": {
        "preset": "multi-tenant",
        "config": {"kubernetes": {"endpointSource": "endpoints"}, "status": {"publishService": "gw/gw"}},
        "gatewayProxy": {"provider": {"pluginMetadata": {"http-logger": {"log_format": {"a": "$host"}}}}},
    },
    "namespaced": {"rbac": {"scope": "namespaced"}, "config": {"kubernetes": {"watchNamespaces": ["shop", "blog"]}}},
    "fewest": merged(
        {"config": {"leaderElection": {"disable": True}, "status": {"enabled": False}}},
        nested("deployment.replicas", 1),
    ),
}


@pytest.mark.parametrize("chart", CHARTS)
def test_doctor_checks_exactly_the_permissions_that_the_chart_grants(chart: str, tmp_path: Path) -> None:
    manifests = render(merged(WITH_KEY, CHARTS[chart]))
    name = find(manifests, "Deployment")["metadata"]["name"]
    config = tmp_path / "config.yaml"
    config.write_text(find(manifests, "ConfigMap", name)["data"]["config.yaml"])
    settings: Settings = load_settings(config)
    want = set(granted(manifests))
    assert translation_options(settings)
    assert needed_rights(settings, "apisix-ingress") == want


def secret(name: str, **data: str) -> Manifest:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def test_no_secret_is_in_a_bundle_and_its_objects_can_be_translated_again(
    stage: Stage, tmp_path: Path, canary_search: Search
) -> None:
    # Values in specs are not secret to users who may read them: only the bundle is searched for them.
    inline = Canaries()
    words = {name: f"planted-{name}-{stage.mark}" for name in ("pass", "jwt", "code", "header", "token", "note", "log")}
    for name, word in words.items():
        inline.plant(word, name)
    leaf = CA().issue_cert(stage.host)
    pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    plugins: dict[str, dict[str, Any]] = {
        "loggly": {"customer_token": words["pass"]},
        "http-logger": {"uri": "http://127.0.0.1:1/", "auth_header": words["log"]},
        "proxy-rewrite": {"headers": {"set": {"Authorization": f"Bearer {words['header']}", "X-Api-Key": "ab-cd-ef"}}},
        "serverless-pre-function": {"functions": [f"return function() local a = '{words['code']}' end"]},
    }
    noted = route(f"n.{stage.host}", name="noted")
    noted["metadata"]["annotations"] = {"example.org/token": words["note"]}
    consumer = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixConsumer",
        "metadata": {"name": "jack"},
        "spec": {"authParameter": {"jwtAuth": {"value": {"key": "jack-key-of-it", "secret": words["jwt"]}}}},
    }
    stage.apply([secret("words", token=words["token"]), secret("cert", **pair), consumer, noted])
    tls = {"hosts": [stage.host], "secret": {"name": "cert", "namespace": stage.namespace}}
    meta = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixTls", "metadata": {"name": "cert"}}
    stage.apply([{**meta, "spec": tls}, route(f"s.{stage.host}", name="secured", plugins=plugins)])
    well(stage)
    stage.api.wait("ApisixConsumer", "jack", says("True"), "to be well", namespace=stage.namespace)
    stage.wait_route(says("True"), "to be well", name="secured")
    ask, path = shell(stage, tmp_path), tmp_path / "bundle.zip"
    got = ask("bundle", "--write", str(path))
    assert (got.returncode, got.stderr) == (0, "")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        files = {name: archive.read(name).decode() for name in names}
        archive.extractall(tmp_path / "bundle")
    assert names == sorted(names)
    assert {"about.json", "doctor.json", "events.json", "settings.json", "status.json"} <= set(names)
    assert {"records/default.json", "objects/ApisixRoute.yaml", "objects/Secret.yaml"} <= set(names)
    shown = {name: canary_search.canaries.leaks(text) | inline.leaks(text) for name, text in files.items()}
    assert {name: found for name, found in shown.items() if found} == {}
    assert stage.host in files["records/default.json"]
    played = ask("translate", "-f", str(tmp_path / "bundle" / "objects"), "-o", "json")
    routes = {each["id"] for each in json.loads(played.stdout)["records"]["routes"]}
    assert routes == stage.gateway.records("routes").keys()
    again = ask("bundle", "--write", str(path))
    assert (again.returncode, "exists" in again.stderr) == (2, True)
