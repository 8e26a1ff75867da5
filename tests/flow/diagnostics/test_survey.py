"""Commands that read an API server and its gateways over HTTP: they report what is unreachable or forbidden."""

import json
import socket

import pytest

from apisix_ingress.diagnostics.collect import inventory as inventories
from apisix_ingress.errors import KubeTimeout
from apisix_ingress.kube.status.events import COMPONENT, FAILED_EVENT
from apisix_ingress.model.kinds.gateway_api import GATEWAY_GROUP
from apisix_ingress.model.kinds.table import RESOURCES
from tests.canary import marked
from tests.fakes.kube.apiserver import Fault
from tests.flow.surveying import SurveyHarness, plain, route, say


async def test_a_setup_without_problems_is_healthy(harness: SurveyHarness) -> None:
    await harness.fill()
    code, got = await harness.ask("status")
    assert (code, got["healthy"], got["unread"]) == (0, True, [])
    assert got["leader"]["holder"] == "one"
    assert got["clusters"][0]["records"]["there"] == 2
    assert got["objects"] == {"ApisixRoute": {"ok": 1, "failed": 0, "waiting": 0, "pending": 0}}


async def test_status_prints_tables_and_supports_filters(harness: SurveyHarness) -> None:
    await harness.fill()
    harness.server.put(say(harness.server.put(route("broken", service="gone")), "False", "no Service gone"))
    code, one = await harness.ask("status", "-n", "default", "--kind", "ar")
    assert (code, [each["object"]["name"] for each in one["items"]]) == (1, ["broken"])
    code, other = await harness.ask("status", "-n", "elsewhere", "--all")
    assert (other["objects"], other["items"]) == ({}, [])
    got = await harness.cli.beside("status", "--all", "--config", harness.config)
    assert got.stdout.splitlines()[0].startswith("1 object")
    rows = [line.split()[:4] for line in got.stdout.splitlines() if line.startswith("ApisixRoute  default/")]
    assert rows == [
        ["ApisixRoute", "default/broken", "failed", "ServiceNotFound"],
        ["ApisixRoute", "default/web", "ok", "ResourcesSynced"],
    ]


async def test_status_knows_since_when_an_ingress_fails_from_its_event(harness: SurveyHarness) -> None:
    await harness.fill()
    backend = {"service": {"name": "gone", "port": {"number": 80}}}
    rule = {"host": "lost.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    meta = {"name": "lost", "namespace": "default"}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
    harness.server.put({**kind, "metadata": meta, "spec": {"ingressClassName": "apisix", "rules": [rule]}})
    event = {"reason": "ServiceNotFound", "message": f"{FAILED_EVENT}x", "reportingComponent": COMPONENT}
    about = {"kind": "Ingress", "namespace": "default", "name": "lost"}
    times = {"firstTimestamp": "2026-11-22T08:55:30Z", "lastTimestamp": "2026-11-22T09:00:00Z"}
    named = {**meta, "name": "lost.1"}
    harness.server.put(
        {"apiVersion": "v1", "kind": "Event", "metadata": named, "involvedObject": about, **event, **times}
    )
    _, got = await harness.ask("status", "--kind", "Ingress")
    assert [(each["reason"], each["since"]) for each in got["items"]] == [("ServiceNotFound", "2026-11-22T08:55:30Z")]


async def test_status_watches_only_as_text(harness: SurveyHarness) -> None:
    got = await harness.cli.beside("status", "--watch", "-o", "json", "--config", harness.config)
    assert (got.returncode, got.stderr) == (2, "error: --watch requires the output format text\n")


async def test_context_selects_a_context_of_the_kubeconfig(harness: SurveyHarness) -> None:
    await harness.fill()
    got = await harness.cli.beside("status", "--context", "nowhere", "--config", harness.config)
    assert (got.returncode, "no context 'nowhere'; it has: " in got.stderr) == (2, True)
    name = got.stderr.strip().rpartition(" ")[2]
    assert (await harness.ask("status", "--context", name))[0] == 0


async def test_ca_file_is_the_one_of_the_admin_api(harness: SurveyHarness) -> None:
    https = ("--admin-url", "https://127.0.0.1:1/apisix/admin")
    got = await harness.cli.beside("diff", *https, "--ca-file", "ca.pem", "--config", harness.config)
    assert (got.returncode, "ca.pem" in got.stderr) == (2, True)


async def test_a_record_that_is_missing_and_one_without_an_object_are_counted(harness: SurveyHarness) -> None:
    await harness.fill()
    id_, body = harness.gateway.records["routes"].popitem()
    harness.gateway.records["routes"] = {"stray": {**body, "id": "stray"}, "theirs": {"uri": "/x"}}
    code, got = await harness.ask("status")
    want = {"wanted": 2, "there": 1, "differing": 0, "missing": 1, "extra": 1, "foreign": 1}
    assert (code, got["clusters"][0]["records"], got["clusters"][0]["in_sync"]) == (1, want, False)
    assert id_ != "stray"


async def test_kinds_that_may_not_be_listed_are_named_and_the_rest_is_reported(harness: SurveyHarness) -> None:
    await harness.fill()
    harness.server.faults.append(Fault("list", "secrets", status=403))
    code, got = await harness.ask("status")
    assert (code, [each["kind"] for each in got["unread"]]) == (1, ["Secret"])
    assert got["objects"]["ApisixRoute"]["ok"] == 1


async def test_a_kind_that_is_not_installed_has_no_objects(harness: SurveyHarness) -> None:
    harness.server.uninstall("apisixroutes")
    got = await harness.inventory()
    gateway_api = frozenset(row.kind for row in RESOURCES.values() if row.group == GATEWAY_GROUP)
    assert (got.absent, got.unread, got.ours()) == (gateway_api | {"ApisixRoute"}, {}, ())


async def test_lists_come_in_pages_and_an_object_that_cannot_be_read_is_reported(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventories, "PAGE", 2)
    for number in range(5):
        harness.server.put(route(f"more-{number}"))
    harness.server.put(plain("Secret", "odd", data={"a": "no base64!"}))
    got = await harness.inventory()
    assert len(got.ours()) == 6
    assert got.unread == {"Secret": "an object cannot be read (ValueError)"}


async def test_explain_quotes_the_refusal_of_the_route_that_should_answer(harness: SurveyHarness) -> None:
    await harness.fill()
    harness.gateway.records["routes"].clear()
    harness.server.put(say(harness.server.put(route()), "False", "unknown plugin [limit-cuont]"))
    code, got = await harness.ask("explain", "web.example.org/")
    assert (code, got["answer"]["status"], got["should"]["owner"]["name"]) == (1, 404, "web")
    assert got["answer"]["summary"].endswith("unknown plugin [limit-cuont]")


async def test_explain_names_the_object_whose_service_is_missing(harness: SurveyHarness) -> None:
    await harness.fill()
    harness.server.put(route("broken", service="gone"))
    code, got = await harness.ask("explain", "broken.example.org/")
    assert (code, [each["object"]["name"] for each in got["objects"]]) == (1, ["broken"])
    assert "Service default/gone" in got["answer"]["summary"]


async def test_explain_continues_without_the_api_server_and_reports_it(harness: SurveyHarness) -> None:
    await harness.fill()
    await harness.server.stop()
    code, got = await harness.ask("explain", "nobody.example.org/")
    assert (code, got["answer"]["status"]) == (1, 404)
    assert got["notes"][0].startswith("objects were not read: API server 127.0.0.1:")


async def test_only_watched_namespaces_are_read(harness: SurveyHarness) -> None:
    other = route("other")
    other["metadata"]["namespace"] = "elsewhere"
    harness.server.put(other)
    assert [str(item.meta.key) for item in (await harness.inventory(watch_namespaces=["elsewhere"])).ours()] == [
        "ApisixRoute elsewhere/other"
    ]


async def test_an_unreachable_api_server_ends_status_with_an_error(harness: SurveyHarness) -> None:
    await harness.server.stop()
    got = await harness.cli.beside("status", "--config", harness.config)
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.startswith("error: API server 127.0.0.1:")


@pytest.mark.parametrize("command", ["status", "diff", "orphans", "bundle -o json", "tree web.example.org"])
async def test_an_unresponsive_api_server_gets_one_request(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    # A busy machine may take that long to connect.
    monkeypatch.setattr(inventories, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        kubeconfig = harness.server.kubeconfig(harness.cli.folder / "kubeconfig")
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        kubeconfig.write_text(kubeconfig.read_text().replace(harness.server.url, f"http://{place}"))
        got = await harness.cli.beside(*command.split(), "--config", harness.config)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    want = f"error: API server {place}: GET /version: no response in time\n"
    assert (got.returncode, got.stdout, got.stderr) == (2, "", want)


@pytest.mark.parametrize("command", ["status", "diff", "orphans", "bundle -o json", "tree", "wait ing default/web"])
async def test_rejected_credentials_end_a_command_with_one_line(harness: SurveyHarness, command: str) -> None:
    harness.server.token = marked("another-token")
    got = await harness.cli.beside(*command.split(), "--config", harness.config)
    assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert got.stderr.endswith("GET /version: 401: Unauthorized; it rejects these credentials\n")


async def test_tree_of_a_forbidden_kind_is_an_error(harness: SurveyHarness) -> None:
    harness.server.faults.append(Fault("list", status=403))
    got = await harness.cli.beside("tree", "-o", "json", "--config", harness.config)
    *warnings, last = got.stderr.splitlines()
    assert (got.returncode, got.stdout, last) == (2, "", "error: the tree cannot be drawn without these kinds")
    assert "warning: cannot read ApisixRoute: these credentials may not list apisixroutes" in "\n".join(warnings)


async def test_a_list_without_a_response_ends_the_others(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventories, "AT_ONCE", 1)
    monkeypatch.setattr(inventories, "LIST_SECONDS", 0.5)
    harness.server.faults.append(Fault("list", "*", hang=True))
    with pytest.raises(KubeTimeout, match="no response in time"):
        await harness.inventory()
    assert [seen.verb for seen in harness.server.seen].count("list") == 1


async def test_status_reports_an_unreachable_gateway(harness: SurveyHarness) -> None:
    await harness.gateway.stop()
    code, got = await harness.ask("status")
    assert (code, got["clusters"][0]["reachable"], got["clusters"][0]["records"]) == (1, False, None)


async def test_tree_shows_the_path_from_the_host_to_the_pod(harness: SurveyHarness) -> None:
    got = await harness.cli.beside("tree", "web.example.org", "--config", harness.config)
    assert (got.returncode, got.stderr) == (0, "")
    assert got.stdout.splitlines()[-1].endswith("10.0.0.1:8080 by Pod default/web-0")


async def test_lint_reads_a_cluster_on_request(harness: SurveyHarness) -> None:
    path = harness.cli.write("b.yaml", json.dumps(route("b")))
    code, alone = await harness.cli.json("lint", path)
    assert (code, [each["name"] for each in alone["findings"]]) == (3, ["NotChecked"])
    assert await harness.ask("lint", path, "--live") == (0, {"findings": []})
