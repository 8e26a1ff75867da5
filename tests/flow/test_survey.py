"""Commands that look at an API server and its gateways, over HTTP: whatever is away or refused is told."""

import base64
import json
import socket
import zipfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from trustme import CA

import crds
from apisix_ingress.errors import GatewayError, GatewayRejected, KubeTimeout
from apisix_ingress.gateway.admin import AdminBackend, AdminKey
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.settings import load_settings
from apisix_ingress.survey import inventory as inventories
from apisix_ingress.survey import live
from apisix_ingress.survey.doctor import examine
from apisix_ingress.survey.inventory import Inventory, take_inventory
from apisix_ingress.survey.live import wait_live
from apisix_ingress.survey.look import api_server
from tests.canary import FORMS, marked
from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.apiserver import FakeApiServer, Fault, Kind, Manifest
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import make_record
from tests.flow.commandline import Cli
from tests.flow.test_app import SERVED

CRD = Kind("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
HOOKS = Kind(
    "ValidatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    namespaced=False,
)
WELL = {"type": "ResourcesAvailable", "status": "True", "reason": "ResourcesSynced", "message": "Sync Successfully"}
REVIEWS = "selfsubjectaccessreviews"


def allow(*, but: str = "") -> Fault:
    """Return what answers reviews of rights: yes, or no to one resource."""

    def is_asked(seen: Any) -> bool:
        return bool(seen.body["spec"]["resourceAttributes"]["resource"] == but)

    body = json.dumps({"status": {"allowed": not but}})
    return Fault("create", REVIEWS, status=201, body=body, when=is_asked if but else None)


def route(name: str = "web", *, service: str = "web", **spec: Any) -> Manifest:
    """Return an ApisixRoute of one rule."""
    rule = {
        "name": "rule",
        "match": {"hosts": [f"{name}.example.org"], "paths": ["/*"]},
        "backends": [{"serviceName": service, "servicePort": 80}],
        **spec,
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta, "spec": {"http": [rule]}}


def plain(kind: str, name: str, **rest: Any) -> Manifest:
    """Return an object of a built-in kind."""
    meta = {"name": name, **({"namespace": "default"} if kind != "IngressClass" else {}), **rest.pop("meta", {})}
    return {"apiVersion": SERVED[kind].api_version, "kind": kind, "metadata": meta, **rest}


def say(item: Manifest, status: str = "True", message: str = "Sync Successfully") -> Manifest:
    """Return an object with a condition for its present generation."""
    condition = {**WELL, "status": status, "message": message, "observedGeneration": item["metadata"]["generation"]}
    return {**item, "status": {"conditions": [condition]}}


@dataclass
class Scene:
    """An API server and a gateway, and the command line beside them."""

    server: FakeApiServer
    gateway: FakeAdminApi
    cli: Cli
    config: str

    async def inventory(self, **kubernetes: Any) -> Inventory:
        """Read the API server."""
        settings = load_settings(self.cli.folder / self.config, {"kubernetes": kubernetes})
        async with api_server(settings) as api:
            return await take_inventory(api, settings)

    async def fill(self) -> None:
        """Give the gateway what is wanted."""
        found = await self.inventory()
        for key, record in found.world.desired.records("default").items():
            self.gateway.records.setdefault(key.kind, {})[key.id] = dict(record.body)

    async def ask(self, command: str, *arguments: str) -> tuple[int, Any]:
        """Run a command; return its exit status and document."""
        return await self.cli.json(command, *arguments, "--config", self.config)

    async def checks(self, *arguments: str) -> dict[str, list[tuple[str, str]]]:
        """Return what doctor found: name → level and message."""
        found: dict[str, list[tuple[str, str]]] = {}
        for each in (await self.ask("doctor", *arguments))[1]["checks"]:
            found.setdefault(each["name"], []).append((each["level"], each["message"]))
        return found

    def lead(self, *, seconds: float = 1.0, namespace: str = "default", holder: str = "one") -> None:
        """Have somebody lead, who renewed some seconds ago."""
        moment = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
        spec = {"holderIdentity": holder, "renewTime": moment, "leaseDurationSeconds": 60}
        self.server.put(plain("Lease", "apisix-ingress-leader", meta={"namespace": namespace}, spec=spec))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A Service with a pod and a route to it, which is in effect."""
    async with FakeApiServer([*SERVED.values(), CRD, HOOKS]) as server, FakeAdminApi() as gateway:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        config = {
            "kubernetes": {"kubeconfig": str(kubeconfig), "election": {"namespace": "default"}},
            "clusters": [{"admin_url": gateway.url, "admin_key": gateway.key}],
        }
        cli = Cli(tmp_path)
        made = Scene(server, gateway, cli, cli.write("config.yaml", json.dumps(config)))
        server.put(plain("Service", "web", spec={"clusterIP": "10.96.0.1", "ports": [{"port": 80, "name": "http"}]}))
        slice_ = {"addressType": "IPv4", "ports": [{"name": "http", "port": 8080}]}
        labels = {"labels": {"kubernetes.io/service-name": "web"}}
        server.put(plain("EndpointSlice", "web-1", meta=labels, **slice_, endpoints=[{"addresses": ["10.0.0.1"]}]))
        server.put(plain("Pod", "web-0", status={"podIP": "10.0.0.1"}))
        server.put(say(server.put(route())))
        made.lead()
        yield made


async def test_a_set_up_that_is_well_is_healthy(scene: Scene) -> None:
    await scene.fill()
    code, got = await scene.ask("status")
    assert (code, got["healthy"], got["unread"]) == (0, True, [])
    assert got["leader"]["holder"] == "one"
    assert got["clusters"][0]["records"]["there"] == 2
    assert got["objects"] == {"ApisixRoute": {"ok": 1, "failed": 0, "pending": 0}}


async def test_a_record_that_is_missing_and_one_without_an_object_are_counted(scene: Scene) -> None:
    await scene.fill()
    id_, body = scene.gateway.records["routes"].popitem()
    scene.gateway.records["routes"] = {"stray": {**body, "id": "stray"}, "theirs": {"uri": "/x"}}
    code, got = await scene.ask("status")
    want = {"wanted": 2, "there": 1, "differing": 0, "missing": 1, "extra": 1, "foreign": 1}
    assert (code, got["clusters"][0]["records"], got["clusters"][0]["in_sync"]) == (1, want, False)
    assert id_ != "stray"


async def test_kinds_that_may_not_be_listed_are_named_and_the_rest_is_told(scene: Scene) -> None:
    await scene.fill()
    scene.server.faults.append(Fault("list", "secrets", status=403))
    code, got = await scene.ask("status")
    assert (code, [each["kind"] for each in got["unread"]]) == (1, ["Secret"])
    assert got["objects"]["ApisixRoute"]["ok"] == 1


async def test_a_kind_that_is_not_installed_has_no_objects(scene: Scene) -> None:
    scene.server.uninstall("apisixroutes")
    got = await scene.inventory()
    assert (got.absent, got.unread, got.ours()) == (frozenset({"ApisixRoute"}), {}, ())


async def test_lists_come_in_pages_and_an_object_that_can_not_be_read_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventories, "PAGE", 2)
    for number in range(5):
        scene.server.put(route(f"more-{number}"))
    scene.server.put(plain("Secret", "odd", data={"a": "no base64!"}))
    got = await scene.inventory()
    assert len(got.ours()) == 6
    assert got.unread == {"Secret": "an object can't be read (ValueError)"}


async def test_namespaces_that_are_watched_are_read_alone(scene: Scene) -> None:
    other = route("other")
    other["metadata"]["namespace"] = "elsewhere"
    scene.server.put(other)
    assert [str(item.meta.key) for item in (await scene.inventory(watch_namespaces=["elsewhere"])).ours()] == [
        "ApisixRoute elsewhere/other"
    ]


async def test_an_api_server_that_is_away_ends_status_with_its_error(scene: Scene) -> None:
    await scene.server.stop()
    got = await scene.cli.beside("status", "--config", scene.config)
    assert (got.returncode, got.stdout) == (2, "")
    assert got.stderr.startswith("error: API server 127.0.0.1:")


@pytest.mark.parametrize("command", ["status", "diff", "orphans", "bundle -o json", "tree web.example.org"])
async def test_an_api_server_that_never_answers_is_asked_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(inventories, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        kubeconfig = scene.server.kubeconfig(scene.cli.folder / "kubeconfig")
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        kubeconfig.write_text(kubeconfig.read_text().replace(scene.server.url, f"http://{place}"))
        got = await scene.cli.beside(*command.split(), "--config", scene.config)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    want = f"error: API server {place}: GET /version: no answer in time\n"
    assert (got.returncode, got.stdout, got.stderr) == (2, "", want)


@pytest.mark.parametrize("command", ["status", "diff", "orphans", "bundle -o json", "tree", "wait ing default/web"])
async def test_credentials_that_are_refused_end_a_command_with_one_line(scene: Scene, command: str) -> None:
    scene.server.token = marked("another-token")
    got = await scene.cli.beside(*command.split(), "--config", scene.config)
    assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert got.stderr.endswith("GET /version: 401: Unauthorized; it does not accept these credentials\n")


async def test_tree_of_what_may_not_be_read_is_an_error(scene: Scene) -> None:
    scene.server.faults.append(Fault("list", status=403))
    got = await scene.cli.beside("tree", "-o", "json", "--config", scene.config)
    *warnings, last = got.stderr.splitlines()
    assert (got.returncode, got.stdout, last) == (2, "", "error: nothing can be drawn without these kinds")
    assert "warning: not read: ApisixRoute: these credentials may not list apisixroutes" in "\n".join(warnings)


async def test_wait_says_that_a_kind_is_not_installed(scene: Scene) -> None:
    scene.server.uninstall("apisixroutes")
    got = await scene.cli.beside("wait", "ar", "default/web", "--config", scene.config)
    want = "error: ApisixRoute is not installed: apisix-ingress crds | kubectl apply --server-side -f -\n"
    assert (got.returncode, got.stdout, got.stderr) == (2, "", want)


async def test_a_list_that_is_never_answered_ends_the_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventories, "AT_ONCE", 1)
    monkeypatch.setattr(inventories, "LIST_SECONDS", 0.1)
    scene.server.faults.append(Fault("list", "*", hang=True))
    with pytest.raises(KubeTimeout, match="no answer in time"):
        await scene.inventory()
    assert [seen.verb for seen in scene.server.seen].count("list") == 1


async def test_a_gateway_that_is_away_is_told_by_status(scene: Scene) -> None:
    await scene.gateway.stop()
    code, got = await scene.ask("status")
    assert (code, got["clusters"][0]["reachable"], got["clusters"][0]["records"]) == (1, False, None)


async def test_tree_leads_from_the_host_to_the_pod(scene: Scene) -> None:
    got = await scene.cli.beside("tree", "web.example.org", "--config", scene.config)
    assert (got.returncode, got.stderr) == (0, "")
    assert got.stdout.splitlines()[-1].endswith("10.0.0.1:8080 by Pod default/web-0")


async def test_wait_returns_at_once_for_an_object_that_is_live(scene: Scene) -> None:
    code, got = await scene.ask("wait", "ar", "default/web")
    assert (code, got["outcome"]) == (0, "live")
    assert scene.server.count("watch", "apisixroutes") == 0


async def test_wait_hears_of_a_condition_that_comes_later(scene: Scene) -> None:
    late = scene.server.put(route("late"))
    scene.server.faults.append(Fault("watch", "apisixroutes", delay=0.05, when=lambda seen: bool(news())))

    def news() -> Manifest:
        return scene.server.put(say(late))

    code, got = await scene.ask("wait", "ar", "default/late", "--timeout", "20s")
    assert (code, got["outcome"]) == (0, "live")


@pytest.mark.parametrize(
    ("name", "timeout", "outcome", "reason"),
    [("broken", "20s", "failed", "ResourcesSynced"), ("absent", "300ms", "timed out", "NotFound")],
)
async def test_wait_tells_why_an_object_is_not_live(
    scene: Scene, name: str, timeout: str, outcome: str, reason: str
) -> None:
    scene.server.put(say(scene.server.put(route("broken")), "False", "no Service"))
    code, got = await scene.ask("wait", "ar", f"default/{name}", "--timeout", timeout)
    assert (code, got["outcome"], got["reason"]) == (1, outcome, reason)


async def test_wait_goes_on_while_the_api_server_fails(scene: Scene) -> None:
    scene.server.faults += [
        Fault("list", "apisixroutes", status=503, times=1),
        Fault("watch", "*", status=500, times=1),
    ]
    late = scene.server.put(route("late"))
    told: list[str] = []

    class Quick(FakeClock):
        """Time passes only where somebody sleeps; the object is live after the third answer."""

        async def sleep(self, seconds: float) -> None:
            self.shift(seconds)
            if len(told) == 3:
                scene.server.put(say(late))

    settings, key = load_settings(scene.cli.folder / scene.config), ObjectKey("ApisixRoute", "default", "late")
    async with api_server(settings) as api:
        got = await wait_live(api, settings, key, seconds=60, clock=Quick(), step=told.append)
    states = [line.removeprefix(f"{key}: ").partition(":")[0] for line in told]
    assert (got.outcome, states) == ("live", ["Unavailable", "Pending", "Unavailable", "live"])


@pytest.mark.parametrize(("status", "times", "code"), [(503, 1, 0), (503, None, 1), (403, None, 2)])
async def test_wait_goes_on_for_an_ingress_while_a_list_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, status: int, times: int | None, code: int
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    scene.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    await scene.fill()
    scene.server.faults.append(Fault("list", "secrets", status=status, times=times))
    timeout = "20s" if times else "300ms"
    got = await scene.cli.beside("wait", "ing", "default/web", "--timeout", timeout, "--config", scene.config)
    assert got.returncode == code


async def test_wait_for_an_ingress_goes_on_while_the_api_server_is_away(scene: Scene) -> None:
    await scene.server.stop()
    code, got = await scene.ask("wait", "ing", "default/web", "--timeout", "300ms")
    assert (code, got["outcome"], got["reason"]) == (1, "timed out", "Unavailable")
    assert "can't connect" in got["message"]


async def test_wait_compares_an_ingress_with_the_gateway(scene: Scene) -> None:
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}
    rule["http"]["paths"][0]["backend"] = {"service": {"name": "web", "port": {"number": 80}}}  # type: ignore[index]
    scene.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    await scene.fill()
    assert (await scene.ask("wait", "ing", "default/web", "--timeout", "20s"))[1]["outcome"] == "live"
    scene.gateway.records["routes"].clear()
    code, got = await scene.ask("wait", "ing", "default/web", "--timeout", "500ms")
    assert (code, got["outcome"], got["reason"]) == (1, "timed out", "Pending")
    code, got = await scene.ask("wait", "ing", "default/other", "--timeout", "500ms")
    assert (code, got["reason"]) == (1, "NotOurs")
    scene.server.faults.append(Fault("list", "secrets", status=403))
    failed = await scene.cli.beside("wait", "ing", "default/web", "--config", scene.config)
    assert (failed.returncode, "without every Secret" in failed.stderr) == (2, True)


@pytest.mark.parametrize(
    ("status", "number", "outcome"), [(503, 80, "timed out"), (401, 80, "failed"), (503, 81, "failed")]
)
async def test_wait_goes_on_for_an_ingress_while_a_gateway_does_not_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, status: int, number: int, outcome: str
) -> None:
    monkeypatch.setattr(live, "FIRST_SECONDS", 30.0)
    monkeypatch.setattr(live, "LASTING_SECONDS", 0.0)
    backend = {"service": {"name": "web", "port": {"number": number}}}
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    scene.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    scene.gateway.faults.append(AdminFault(status=status))
    code, got = await scene.ask("wait", "ing", "default/web", "--timeout", "300ms")
    assert (code, got["outcome"]) == (1, outcome)


async def refusal(gateway: FakeAdminApi, *faults: AdminFault) -> str:
    """Return what a gateway with faults makes of a write, in the words that a condition has."""
    key = AdminKey(lambda: SecretStr(gateway.key))
    backend = AdminBackend.connect(gateway.url, key, controller="one", timeout=0.2, concurrency=1, tls=None)
    gateway.faults[:] = faults
    record = make_record(RecordKey("routes", "r1"), uri="/a")
    try:
        await backend.put(record)
    except GatewayRejected as error:
        return f"{record.key}: {error.message}"
    except GatewayError as error:
        return f"{record.key}: {error}"
    finally:
        await backend.aclose()
    raise AssertionError("the write succeeded")


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (None, "timed out"),
        (AdminFault(status=503), "timed out"),
        (AdminFault(status=429), "timed out"),
        (AdminFault(cut=True), "timed out"),
        (AdminFault(delay=1.0), "timed out"),
        (AdminFault(status=401), "failed"),
        (AdminFault(status=400), "failed"),
    ],
    ids=["away", "failing", "busy", "cut", "slow", "key", "body"],
)
async def test_wait_goes_on_for_a_custom_resource_while_a_gateway_does_not_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, fault: AdminFault | None, outcome: str
) -> None:
    monkeypatch.setattr(live, "LASTING_SECONDS", 0.0)
    if fault is None:
        await scene.gateway.stop()
    words = await refusal(scene.gateway, *([fault] if fault else []))
    scene.server.put(say(scene.server.put(route("late")), "False", words))
    code, got = await scene.ask("wait", "ar", "default/late", "--timeout", "300ms")
    assert (code, got["outcome"], got["message"]) == (1, outcome, words)


@pytest.mark.parametrize(
    "arguments", [("Pod", "a/b"), ("ar", "web"), ("ar", "a/b", "--timeout", "soon"), ("ar", "a/b", "--for=x")]
)
async def test_wait_refuses_what_it_can_not_read(scene: Scene, arguments: tuple[str, ...]) -> None:
    got = await scene.cli.beside("wait", *arguments, "--config", scene.config)
    assert (got.returncode, got.stdout) == (2, "")


async def test_doctor_finds_nothing_wrong_where_nothing_is(scene: Scene) -> None:
    await scene.fill()
    for definition in crds.manifests():
        scene.server.put(definition)
    scene.server.put(
        plain("IngressClass", "apisix", spec={"controller": "apisix.apache.org/apisix-ingress-controller"})
    )
    scene.server.faults.append(allow())
    checks = await scene.checks()
    assert {name: level for name, found in checks.items() for level, _ in found if level in ("FAIL", "WARN")} == {}
    want = {"settings", "api-server", "api-clock", "rights", "crds", "objects", "ingress-class", "leader"}
    want |= {"controller-name", "certificates", "webhook", "gateway default", "gateway default key"}
    assert want <= checks.keys()
    assert (await scene.cli.beside("doctor", "--config", scene.config)).returncode == 0


async def test_doctor_names_the_right_that_lacks(scene: Scene) -> None:
    scene.server.faults += [allow(but="secrets"), allow()]
    ((level, words),) = (await scene.checks())["rights"]
    assert (level, words) == ("FAIL", "these credentials may not: list secrets, watch secrets")


async def test_doctor_asks_for_a_service_account(scene: Scene) -> None:
    scene.server.faults.append(
        Fault("create", "subjectaccessreviews", status=201, body='{"status": {"allowed": true}}')
    )
    ((level, words),) = (await scene.checks("--account", "apisix/controller"))["rights"]
    assert (level, words.startswith("service account apisix/controller may do all ")) == ("OK", True)
    asked = next(seen.body["spec"] for seen in scene.server.seen if seen.plural == "subjectaccessreviews")
    assert asked["user"] == "system:serviceaccount:apisix:controller"


async def test_doctor_knows_crds_of_another_version_and_those_that_are_missing(scene: Scene) -> None:
    first, second, *_ = crds.manifests()
    second["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "an older one"
    scene.server.put(first)
    scene.server.put(second)
    found = dict((await scene.checks())["crds"])
    assert "apisixroutes.apisix.apache.org" not in found["FAIL"] + found["WARN"]
    assert found["WARN"].endswith(second["metadata"]["name"])
    # Without it the API server refuses what Helm installed and a later version changed.
    fixes = {each["fix"] for each in (await scene.ask("doctor"))[1]["checks"] if each["name"] == "crds"}
    assert fixes == {"apisix-ingress crds | kubectl apply --server-side --force-conflicts -f -"}


@pytest.mark.parametrize(
    ("seconds", "holder", "level"), [(1, "one", "OK"), (100, "one", "FAIL"), (1, "", "FAIL"), (None, "", "WARN")]
)
async def test_doctor_looks_who_leads(scene: Scene, seconds: float | None, holder: str, level: str) -> None:
    if seconds is None:
        scene.server.remove("leases", "apisix-ingress-leader")
    else:
        scene.lead(seconds=seconds, holder=holder)
    assert (await scene.checks())["leader"][0][0] == level


async def test_doctor_finds_another_controller_of_the_same_name(scene: Scene) -> None:
    scene.server.put(plain("ConfigMap", "apisix-ingress-ledger", meta={"namespace": "elsewhere"}))
    ((level, words),) = (await scene.checks())["controller-name"]
    assert (level, "elsewhere" in words) == ("WARN", True)


@pytest.mark.parametrize(
    ("controller", "level"),
    [("somebody.example/else", "WARN"), ("apisix.apache.org/apisix-ingress-controller", "OK"), (None, "OK")],
)
async def test_doctor_looks_whose_the_class_is(scene: Scene, controller: str | None, level: str) -> None:
    if controller:
        scene.server.put(plain("IngressClass", "apisix", spec={"controller": controller}))
    assert (await scene.checks())["ingress-class"][0][0] == level


async def test_doctor_goes_on_without_the_api_server_and_without_a_kubeconfig(scene: Scene, tmp_path: Path) -> None:
    checks = await scene.checks("--kubeconfig", str(tmp_path / "absent"))
    assert (checks["api-server"][0][0], checks["gateway default"][0][0]) == ("FAIL", "OK")
    await scene.server.stop()
    checks = await scene.checks()
    assert (checks["api-server"][0][0], checks["gateway default"][0][0]) == ("FAIL", "OK")


async def test_doctor_tells_settings_that_are_refused(scene: Scene) -> None:
    config = scene.cli.write("wrong.yaml", "kubernetes: {ingres_class: a}\nclusters: []\n")
    code, got = await scene.cli.json("doctor", "--config", config)
    assert (code, [each["level"] for each in got["checks"]]) == (1, ["FAIL"] * len(got["checks"]))
    assert "ingres_class" in got["checks"][0]["message"]


async def test_doctor_tells_a_refused_key_a_published_one_and_none(scene: Scene) -> None:
    ((level, words),) = (await scene.checks("--admin-key", "another-key"))["gateway default"]
    assert (level, "refuses the admin key" in words) == ("FAIL", True)
    scene.gateway.key = "edd1c9f034335f136f87ad84b625c8f1"
    found = (await scene.checks("--admin-key", scene.gateway.key))["settings"]
    assert [level for level, _ in found] == ["WARN"]


def hook(authority: CA | None, **rest: Any) -> Manifest:
    """Return the registration of a webhook."""
    config: dict[str, Any] = {"service": {"name": "hook", "namespace": "default"}}
    if authority is not None:
        config["caBundle"] = base64.b64encode(authority.cert_pem.bytes()).decode()
    rules = [{"apiGroups": ["apisix.apache.org"]}]
    webhooks = [{"name": "validate", "clientConfig": config, "rules": rules, **rest}]
    meta = {"name": "hook"}
    return {"apiVersion": HOOKS.api_version, "kind": HOOKS.kind, "metadata": meta, "webhooks": webhooks}


def pair(authority: CA, days: float, host: str = "hook.default.svc", name: str = "hook") -> Manifest:
    """Return a Secret with a certificate that ends in some days."""
    now = datetime.now(UTC)
    leaf = authority.issue_cert(host, not_before=now - timedelta(days=99), not_after=now + timedelta(days=days))
    data = {"tls.crt": leaf.cert_chain_pems[0].bytes(), "tls.key": leaf.private_key_pem.bytes()}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return plain("Secret", name, type="kubernetes.io/tls", data=encoded)


@pytest.mark.parametrize(
    ("signed", "days", "level"), [(True, 100, "OK"), (True, 3, "WARN"), (True, -3, "FAIL"), (False, 100, "FAIL")]
)
async def test_doctor_judges_the_certificate_of_the_webhook(
    scene: Scene, signed: bool, days: float, level: str
) -> None:
    authority = CA()
    scene.server.put(hook(authority))
    scene.server.put(pair(authority if signed else CA(), days))
    assert (await scene.checks())["webhook"][0][0] == level


@pytest.mark.parametrize(("policy", "level"), [("Fail", "FAIL"), ("Ignore", "WARN")])
async def test_doctor_misses_the_ca_of_a_webhook(scene: Scene, policy: str, level: str) -> None:
    scene.server.put(hook(None, failurePolicy=policy))
    assert (await scene.checks())["webhook"][0][0] == level


@pytest.mark.parametrize(("days", "level"), [(100, "OK"), (3, "WARN"), (-3, "FAIL")])
async def test_doctor_tells_when_certificates_in_use_end(scene: Scene, days: float, level: str) -> None:
    scene.server.put(pair(CA(), days, host="web.example.org", name="cert"))
    spec = {"hosts": ["web.example.org"], "secret": {"name": "cert", "namespace": "default"}}
    meta = {"name": "web", "namespace": "default"}
    scene.server.put({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixTls", "metadata": meta, "spec": spec})
    assert (await scene.checks())["certificates"][0][0] == level


async def test_doctor_tells_stream_routes_that_a_gateway_does_not_serve(scene: Scene) -> None:
    stream = {"name": "tcp", "protocol": "TCP", "match": {"ingressPort": 9100}}
    tcp = route("tcp")
    tcp["spec"] = {"stream": [{**stream, "backend": {"serviceName": "web", "servicePort": 80}}]}
    scene.server.put(tcp)
    assert (await scene.checks())["gateway default streams"][0][0] == "OK"


async def test_a_clock_that_is_wrong_is_told(scene: Scene) -> None:
    settings = load_settings(scene.cli.folder / scene.config)
    got = {check.name: check.level for check in await examine(settings, clock=FakeClock())}
    assert got["api-clock"] == "WARN"


SECRETS: Mapping[str, Any] = {
    "plugins": [
        {"name": "http-logger", "enable": True, "config": {"uri": "http://a", "auth_header": marked("header")}},
        {"name": "csrf", "enable": True, "config": {"key": marked("csrf")}},
        {"name": "serverless-pre-function", "enable": True, "config": {"functions": [f"-- {marked('code')}"]}},
    ]
}


async def test_no_canary_is_in_a_bundle(scene: Scene) -> None:
    word = marked("word")
    data = {"word": base64.b64encode(word.encode()).decode()}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"stringData": {"word": word}})}
    scene.server.put(plain("Secret", "words", data=data, meta={"annotations": applied}))
    told = scene.server.put(route("told", **SECRETS))
    told["metadata"]["annotations"] = {"example.org/password": marked("note"), "example.org/x": word}
    scene.server.put(say(told, "False", f"the gateway said {word}"))
    about = {"kind": "ApisixRoute", "name": "told", "namespace": "default"}
    scene.server.put(plain("Event", "told.1", involvedObject=about, message=f"no {word}", reason="No", type="Warning"))
    containers = [{"env": [{"name": "PASSWORD", "value": marked("env")}]}]
    scene.server.put(plain("Pod", "web-0", spec={"containers": containers}, status={"podIP": "10.0.0.1"}))
    await scene.fill()
    scene.gateway.records["consumers"] = {"jack": {"username": "jack", "plugins": {"key-auth": {"key": marked("k")}}}}
    scene.gateway.records["routes"]["theirs"] = {"uri": "/x", "desc": word}
    got = await scene.cli.beside("bundle", "-o", "one.zip", "--config", scene.config)
    assert (got.returncode, got.stderr) == (0, "")
    with zipfile.ZipFile(scene.cli.folder / "one.zip") as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert [name for name, text in files.items() if any(form in text for form in FORMS)] == []
    assert list(files) == sorted(files)
    assert {"told.example.org" in files[name] for name in ("objects/ApisixRoute.yaml", "records/default.json")} == {
        True
    }
    assert json.loads(files["events.json"])[0]["message"] == "no [redacted]"
    assert "spec" not in files["objects/Pod.yaml"]


async def test_a_bundle_is_printed_as_json_and_overwrites_only_by_force(scene: Scene) -> None:
    code, got = await scene.ask("bundle")
    assert (code, list(got)) == (0, sorted(got))
    scene.cli.write("there.zip", "")
    refused = await scene.cli.beside("bundle", "-o", "there.zip", "--config", scene.config)
    assert (refused.returncode, "there.zip exists" in refused.stderr) == (2, True)
    assert (await scene.cli.beside("bundle", "-o", "there.zip", "--force", "--config", scene.config)).returncode == 0


@pytest.mark.parametrize(
    ("target", "want"),
    [
        ("no/such/one.zip", "no/such/one.zip: can't be written: No such file or directory"),
        ("config.yaml/one.zip", "config.yaml/one.zip: can't be written: Not a directory"),
        (".", ".: can't be written: Is a directory"),
    ],
)
async def test_a_bundle_that_can_not_be_written_asks_nobody(scene: Scene, target: str, want: str) -> None:
    got = await scene.cli.beside("bundle", "--force", "-o", target, "--config", scene.config)
    assert (got.returncode, got.stdout, got.stderr) == (2, "", f"error: {want}\n")
    assert scene.server.seen == []


async def test_a_bundle_that_is_not_made_leaves_the_file_that_was_there(scene: Scene) -> None:
    scene.cli.write("there.zip", "before")
    await scene.server.stop()
    for name in ("there.zip", "new.zip"):
        assert (await scene.cli.beside("bundle", "--force", "-o", name, "--config", scene.config)).returncode == 2
    assert (scene.cli.folder / "there.zip").read_text() == "before"
    assert not (scene.cli.folder / "new.zip").exists()


async def test_events_that_may_not_be_read_leave_a_note_in_the_bundle(scene: Scene) -> None:
    scene.server.faults.append(Fault("list", "events", status=403))
    assert "unread" in (await scene.ask("bundle"))[1]["events.json"]
