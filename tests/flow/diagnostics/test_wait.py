"""The command `wait`, over HTTP: it continues during outages, and reports why an object is not live."""

import pytest
from pydantic import SecretStr

from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.reports import wait as live
from apisix_ingress.diagnostics.reports.wait import wait_live
from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.model.condition import AWAY, aborted
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.settings import load_settings
from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import make_record
from tests.fakes.kube.apiserver import Fault, Manifest
from tests.flow.surveying import SurveyHarness, plain, route, say


async def test_wait_says_that_a_kind_is_not_installed(harness: SurveyHarness) -> None:
    harness.server.uninstall("apisixroutes")
    got = await harness.cli.beside("wait", "ar", "default/web", "--config", harness.config)
    want = "error: ApisixRoute is not installed: apisix-ingress crds | kubectl apply --server-side -f -\n"
    assert (got.returncode, got.stdout, got.stderr) == (2, "", want)


async def test_wait_returns_immediately_for_a_live_object(harness: SurveyHarness) -> None:
    code, got = await harness.ask("wait", "ar", "default/web")
    assert (code, got["outcome"]) == (0, "live")
    assert harness.server.count("watch", "apisixroutes") == 0


async def test_wait_notices_a_later_condition(harness: SurveyHarness) -> None:
    late = harness.server.put(route("late"))
    harness.server.faults.append(Fault("watch", "apisixroutes", delay=0.05, when=lambda seen: bool(news())))

    def news() -> Manifest:
        return harness.server.put(say(late))

    code, got = await harness.ask("wait", "ar", "default/late", "--timeout", "20s")
    assert (code, got["outcome"]) == (0, "live")


@pytest.mark.parametrize(
    ("name", "timeout", "outcome", "reason"),
    [
        ("broken", "20s", "failed", "ServiceNotFound"),
        ("rejected", "20s", "failed", "GatewayRejected"),
        ("waiting", "300ms", "timed out", "GatewayUnavailable"),
        ("absent", "300ms", "timed out", "NotFound"),
    ],
)
async def test_wait_reports_why_an_object_is_not_live(
    harness: SurveyHarness, name: str, timeout: str, outcome: str, reason: str
) -> None:
    harness.server.put(say(harness.server.put(route("broken", service="absent")), "False", "no Service"))
    harness.server.put(say(harness.server.put(route("rejected")), "False", "routes/1: invalid"))
    harness.server.put(say(harness.server.put(route("waiting")), "False", f"{AWAY}no response"))
    code, got = await harness.ask("wait", "ar", f"default/{name}", "--timeout", timeout)
    assert (code, got["outcome"], got["reason"]) == (1, outcome, reason)


async def test_an_object_is_not_live_until_a_pod_is_ready(harness: SurveyHarness) -> None:
    ports = [{"port": 80, "targetPort": 8080}]
    harness.server.put(plain("Service", "idle", spec={"clusterIP": "10.0.0.9", "ports": ports}))
    harness.server.put(say(harness.server.put(route("idle", service="idle"))))
    code, got = await harness.ask("wait", "ar", "default/idle", "--timeout", "300ms")
    want = "Service default/idle has no ready Pod, so its requests get the response 503"
    assert (code, got["outcome"], got["reason"], got["message"]) == (1, "timed out", "NoEndpoints", want)


async def test_wait_survives_api_server_errors(harness: SurveyHarness) -> None:
    harness.server.faults += [
        Fault("list", "apisixroutes", status=503, times=1),
        Fault("watch", "*", status=500, times=1),
    ]
    late = harness.server.put(route("late"))
    reported: list[str] = []

    class Quick(FakeClock):
        """Time passes only during sleeps; the object is live after the third response."""

        async def sleep(self, seconds: float) -> None:
            self.shift(seconds)
            if len(reported) == 3:
                harness.server.put(say(late))

    settings, key = load_settings(harness.cli.folder / harness.config), ObjectKey("ApisixRoute", "default", "late")
    async with api_server(settings) as api:
        got = await wait_live(api, settings, key, seconds=60, clock=Quick(), step=reported.append)
    states = [line.removeprefix(f"{key}: ").partition(":")[0] for line in reported]
    assert (got.outcome, states) == ("live", ["Unavailable", "Pending", "Unavailable", "live"])


@pytest.mark.parametrize(("status", "times", "code"), [(503, 1, 0), (503, None, 1), (403, None, 2)])
async def test_wait_for_an_ingress_survives_a_failed_list(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch, status: int, times: int | None, code: int
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    harness.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    await harness.fill()
    harness.server.faults.append(Fault("list", "secrets", status=status, times=times))
    timeout = "20s" if times else "300ms"
    got = await harness.cli.beside("wait", "ing", "default/web", "--timeout", timeout, "--config", harness.config)
    assert got.returncode == code


async def test_wait_for_an_ingress_survives_an_api_server_outage(harness: SurveyHarness) -> None:
    await harness.server.stop()
    code, got = await harness.ask("wait", "ing", "default/web", "--timeout", "300ms")
    assert (code, got["outcome"], got["reason"]) == (1, "timed out", "Unavailable")
    assert "cannot connect" in got["message"]


async def test_wait_compares_an_ingress_with_the_gateway(harness: SurveyHarness) -> None:
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}
    rule["http"]["paths"][0]["backend"] = {"service": {"name": "web", "port": {"number": 80}}}  # type: ignore[index]
    harness.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    await harness.fill()
    assert (await harness.ask("wait", "ing", "default/web", "--timeout", "20s"))[1]["outcome"] == "live"
    harness.gateway.records["routes"].clear()
    code, got = await harness.ask("wait", "ing", "default/web", "--timeout", "500ms")
    assert (code, got["outcome"], got["reason"]) == (1, "timed out", "Pending")
    code, got = await harness.ask("wait", "ing", "default/other", "--timeout", "500ms")
    assert (code, got["reason"]) == (1, "NotOurs")
    harness.server.faults.append(Fault("list", "secrets", status=403))
    failed = await harness.cli.beside("wait", "ing", "default/web", "--config", harness.config)
    assert (failed.returncode, "without every Secret" in failed.stderr) == (2, True)


@pytest.mark.parametrize(
    ("status", "number", "outcome"), [(503, 80, "timed out"), (401, 80, "failed"), (503, 81, "failed")]
)
async def test_wait_for_an_ingress_survives_an_unresponsive_gateway(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch, status: int, number: int, outcome: str
) -> None:
    monkeypatch.setattr(live, "FIRST_SECONDS", 30.0)
    monkeypatch.setattr(live, "LASTING_SECONDS", 0.0)
    backend = {"service": {"name": "web", "port": {"number": number}}}
    rule = {"host": "i.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    harness.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [rule]}))
    harness.gateway.faults.append(AdminFault(status=status))
    code, got = await harness.ask("wait", "ing", "default/web", "--timeout", "300ms")
    assert (code, got["outcome"]) == (1, outcome)


async def refusal(gateway: FakeAdminApi, *faults: AdminFault) -> str:
    """Return the message of a condition for a write to a gateway with faults."""
    key = AdminKey(lambda: SecretStr(gateway.key))
    # Only a slow gateway must run out of time.
    seconds = 0.2 if any(fault.delay for fault in faults) else 30.0
    backend = AdminClient(gateway.url, key, controller="one", timeout=seconds, concurrency=1, tls=None)
    gateway.faults[:] = faults
    record = make_record(RecordKey("routes", "r1"), uri="/a")
    try:
        await backend.put(record)
    except GatewayRejected as error:
        return f"{record.key}: {error.message}"
    except GatewayError as error:
        return aborted(1, f"{record.key}: {error}", away=isinstance(error, GatewayUnavailable)).message
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
async def test_wait_for_a_custom_resource_survives_an_unresponsive_gateway(
    harness: SurveyHarness, monkeypatch: pytest.MonkeyPatch, fault: AdminFault | None, outcome: str
) -> None:
    monkeypatch.setattr(live, "LASTING_SECONDS", 0.0)
    if fault is None:
        await harness.gateway.stop()
    words = await refusal(harness.gateway, *([fault] if fault else []))
    harness.server.put(say(harness.server.put(route("late")), "False", words))
    code, got = await harness.ask("wait", "ar", "default/late", "--timeout", "300ms")
    assert (code, got["outcome"], got["message"]) == (1, outcome, words)


@pytest.mark.parametrize(
    "arguments", [("Pod", "a/b"), ("ar", "web"), ("ar", "a/b", "--timeout", "soon"), ("ar", "a/b", "--for=x")]
)
async def test_wait_rejects_unsupported_arguments(harness: SurveyHarness, arguments: tuple[str, ...]) -> None:
    got = await harness.cli.beside("wait", *arguments, "--config", harness.config)
    assert (got.returncode, got.stdout) == (2, "")
