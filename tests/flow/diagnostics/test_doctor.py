"""The command `doctor`, over HTTP: every check, each with a set-up that fails it."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trustme import CA

import crds
from apisix_ingress.diagnostics.doctor.report import examine
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.settings import load_settings
from tests.fakes.clock import FakeClock
from tests.fakes.kube.apiserver import Fault, Kind, Manifest
from tests.flow.surveying import CRD, HOOKS, SurveyHarness, plain, route

REVIEWS = "selfsubjectaccessreviews"


def allow(*, but: str = "") -> Fault:
    """Return the override that allows all access reviews, except for one resource."""

    def is_asked(seen: Any) -> bool:
        return bool(seen.body["spec"]["resourceAttributes"]["resource"] == but)

    body = json.dumps({"status": {"allowed": not but}})
    return Fault("create", REVIEWS, status=201, body=body, when=is_asked if but else None)


async def test_doctor_reports_no_problem_for_a_healthy_setup(harness: SurveyHarness) -> None:
    await harness.fill()
    for definition in crds.manifests():
        harness.server.put(definition)
    harness.server.put(
        plain("IngressClass", "apisix", spec={"controller": "apisix.apache.org/apisix-ingress-controller"})
    )
    harness.server.faults.append(allow())
    checks = await harness.checks()
    assert {name: level for name, found in checks.items() for level, _ in found if level in ("FAIL", "WARN")} == {}
    want = {"settings", "api-server", "api-clock", "rights", "crds", "objects", "ingress-class", "leader"}
    want |= {"gateway-api", "controller-name", "certificates", "webhook", "gateway default", "gateway default key"}
    assert want <= checks.keys()
    assert (await harness.cli.beside("doctor", "--config", harness.config)).returncode == 0


async def test_doctor_lists_the_installed_gateway_api_kinds(harness: SurveyHarness) -> None:
    (found,) = (await harness.checks())["gateway-api"]
    assert found == ("OK", "its CRDs are not installed; their kinds are served as soon as they are")
    for kind in ("Gateway", "HTTPRoute"):
        row = RESOURCES[kind]
        harness.server.kinds[row.plural] = Kind(kind, row.api_version, row.plural)
    name = "gateways.gateway.networking.k8s.io"
    group = "gateway.networking.k8s.io"
    notes = {f"{group}/bundle-version": "v1.6.1", f"{group}/channel": "standard"}
    meta = {"name": name, "annotations": notes}
    harness.server.put({"apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": meta})
    (found,) = (await harness.checks())["gateway-api"]
    level, words = found
    assert (level, words.partition("; ")[0]) == ("OK", "v1.6.1 (standard): Gateway v1, HTTPRoute v1")
    assert "PluginConfig v1alpha1" in words.partition("; kinds of 2.x: ")[2]


async def test_doctor_names_the_missing_permission(harness: SurveyHarness) -> None:
    harness.server.faults += [allow(but="secrets"), allow()]
    ((level, words),) = (await harness.checks())["rights"]
    assert (level, words) == ("FAIL", "these credentials: missing permissions: list secrets, watch secrets")


async def test_doctor_asks_for_a_service_account(harness: SurveyHarness) -> None:
    harness.server.faults.append(
        Fault("create", "subjectaccessreviews", status=201, body='{"status": {"allowed": true}}')
    )
    ((level, words),) = (await harness.checks("--account", "apisix/controller"))["rights"]
    assert (level, words.startswith("service account apisix/controller: all ")) == ("OK", True)
    asked = next(seen.body["spec"] for seen in harness.server.seen if seen.plural == "subjectaccessreviews")
    assert asked["user"] == "system:serviceaccount:apisix:controller"


async def test_doctor_reports_missing_and_outdated_crds(harness: SurveyHarness) -> None:
    first, second, third, *_ = crds.manifests()
    second["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "an older one"
    third["spec"]["versions"] = ["no version"]
    for definition in (first, second, third):
        harness.server.put(definition)
    found = dict((await harness.checks())["crds"])
    assert "apisixroutes.apisix.apache.org" not in found["FAIL"] + found["WARN"]
    assert found["WARN"].endswith(", ".join((second["metadata"]["name"], third["metadata"]["name"])))
    # Without it, the API server rejects changes of a later version to objects that Helm installed.
    fixes = {each["fix"] for each in (await harness.ask("doctor"))[1]["checks"] if each["name"] == "crds"}
    assert fixes == {"apisix-ingress crds | kubectl apply --server-side --force-conflicts -f -"}


@pytest.mark.parametrize(
    ("seconds", "holder", "level"), [(1, "one", "OK"), (100, "one", "FAIL"), (1, "", "FAIL"), (None, "", "WARN")]
)
async def test_doctor_reports_the_leader(
    harness: SurveyHarness, seconds: float | None, holder: str, level: str
) -> None:
    if seconds is None:
        harness.server.remove("leases", "apisix-ingress-leader")
    else:
        harness.lead(seconds=seconds, holder=holder)
    assert (await harness.checks())["leader"][0][0] == level


async def test_doctor_finds_another_controller_of_the_same_name(harness: SurveyHarness) -> None:
    harness.server.put(plain("ConfigMap", "apisix-ingress-ledger", meta={"namespace": "elsewhere"}))
    ((level, words),) = (await harness.checks())["controller-name"]
    assert (level, "elsewhere" in words) == ("WARN", True)


@pytest.mark.parametrize(
    ("controller", "level"),
    [("somebody.example/else", "WARN"), ("apisix.apache.org/apisix-ingress-controller", "OK"), (None, "OK")],
)
async def test_doctor_reports_the_owner_of_the_class(
    harness: SurveyHarness, controller: str | None, level: str
) -> None:
    if controller:
        harness.server.put(plain("IngressClass", "apisix", spec={"controller": controller}))
    assert (await harness.checks())["ingress-class"][0][0] == level


async def test_doctor_continues_without_an_api_server_or_kubeconfig(harness: SurveyHarness, tmp_path: Path) -> None:
    checks = await harness.checks("--kubeconfig", str(tmp_path / "absent"))
    assert (checks["api-server"][0][0], checks["gateway default"][0][0]) == ("FAIL", "OK")
    await harness.server.stop()
    checks = await harness.checks()
    assert (checks["api-server"][0][0], checks["gateway default"][0][0]) == ("FAIL", "OK")


async def test_doctor_reports_settings_that_are_refused(harness: SurveyHarness) -> None:
    config = harness.cli.write("wrong.yaml", "kubernetes: {ingres_class: a}\nclusters: []\n")
    code, got = await harness.cli.json("doctor", "--config", config)
    assert (code, [each["level"] for each in got["checks"]]) == (1, ["FAIL"] * len(got["checks"]))
    assert "ingres_class" in got["checks"][0]["message"]


async def test_doctor_reports_a_refused_key_a_published_one_and_none(harness: SurveyHarness) -> None:
    ((level, words),) = (await harness.checks("--admin-key", "another-key"))["gateway default"]
    assert (level, "rejects the admin key" in words) == ("FAIL", True)
    harness.gateway.key = "edd1c9f034335f136f87ad84b625c8f1"
    found = (await harness.checks("--admin-key", harness.gateway.key))["settings"]
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
    """Return a Secret with a certificate that expires in some days."""
    now = datetime.now(UTC)
    leaf = authority.issue_cert(host, not_before=now - timedelta(days=99), not_after=now + timedelta(days=days))
    data = {"tls.crt": leaf.cert_chain_pems[0].bytes(), "tls.key": leaf.private_key_pem.bytes()}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return plain("Secret", name, type="kubernetes.io/tls", data=encoded)


@pytest.mark.parametrize(
    ("signed", "days", "level"), [(True, 100, "OK"), (True, 3, "WARN"), (True, -3, "FAIL"), (False, 100, "FAIL")]
)
async def test_doctor_checks_the_certificate_of_the_webhook(
    harness: SurveyHarness, signed: bool, days: float, level: str
) -> None:
    authority = CA()
    harness.server.put(hook(authority))
    harness.server.put(pair(authority if signed else CA(), days))
    assert (await harness.checks())["webhook"][0][0] == level


async def test_doctor_skips_secrets_without_a_certificate_of_the_webhook(harness: SurveyHarness) -> None:
    authority, garbage = CA(), base64.b64encode(b"no certificate").decode()
    harness.server.put(hook(authority))
    data = {"tls.crt": garbage, "tls.key": garbage}
    harness.server.put(plain("Secret", "garbage", type="kubernetes.io/tls", data=data))
    harness.server.put(pair(CA(), -3, host="other.default.svc", name="other"))
    assert (await harness.checks())["webhook"] == [("OK", "1 registered")]


@pytest.mark.parametrize(("policy", "level"), [("Fail", "FAIL"), ("Ignore", "WARN")])
async def test_doctor_misses_the_ca_of_a_webhook(harness: SurveyHarness, policy: str, level: str) -> None:
    harness.server.put(hook(None, failurePolicy=policy))
    assert (await harness.checks())["webhook"][0][0] == level


@pytest.mark.parametrize(("days", "level"), [(100, "OK"), (3, "WARN"), (-3, "FAIL")])
async def test_doctor_reports_when_certificates_in_use_expire(harness: SurveyHarness, days: float, level: str) -> None:
    harness.server.put(pair(CA(), days, host="web.example.org", name="cert"))
    spec = {"hosts": ["web.example.org"], "secret": {"name": "cert", "namespace": "default"}}
    meta = {"name": "web", "namespace": "default"}
    harness.server.put({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixTls", "metadata": meta, "spec": spec})
    assert (await harness.checks())["certificates"][0][0] == level


async def test_doctor_reports_stream_routes_that_a_gateway_does_not_serve(harness: SurveyHarness) -> None:
    stream = {"name": "tcp", "protocol": "TCP", "match": {"ingressPort": 9100}}
    tcp = route("tcp")
    tcp["spec"] = {"stream": [{**stream, "backend": {"serviceName": "web", "servicePort": 80}}]}
    harness.server.put(tcp)
    assert (await harness.checks())["gateway default streams"][0][0] == "OK"


async def test_a_wrong_clock_is_reported(harness: SurveyHarness) -> None:
    settings = load_settings(harness.cli.folder / harness.config)
    got = {check.name: check.level for check in await examine(settings, clock=FakeClock())}
    assert got["api-clock"] == "WARN"


@pytest.mark.parametrize(
    ("verb", "plural", "check", "want"),
    [
        ("create", REVIEWS, "rights", "SKIP cannot be determined: "),
        ("get", "customresourcedefinitions", "crds", "SKIP cannot be read: "),
        ("get", "leases", "leader", "SKIP lease default/apisix-ingress-leader cannot be read: "),
        ("list", "configmaps", "controller-name", "SKIP other namespaces cannot be checked: "),
        ("list", "validatingwebhookconfigurations", "webhook", "SKIP registrations cannot be read: "),
        ("list", "secrets", "objects", "WARN some kinds could not be read: Secret: "),
    ],
)
async def test_doctor_reports_forbidden_checks(
    harness: SurveyHarness, verb: str, plural: str, check: str, want: str
) -> None:
    harness.server.faults.append(Fault(verb, plural, status=403))
    ((level, words),) = (await harness.checks())[check]
    assert f"{level} {words}".startswith(want)


async def test_doctor_does_not_take_an_empty_response_for_a_permission(harness: SurveyHarness) -> None:
    harness.server.faults.append(Fault("create", REVIEWS, status=201, body="{}"))
    ((level, words),) = (await harness.checks())["rights"]
    assert (level, words) == ("SKIP", "cannot be determined: the response to an access review is empty")


async def test_doctor_misses_a_class_for_an_ingress(harness: SurveyHarness) -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    harness.server.put(plain("Ingress", "web", spec={"ingressClassName": "apisix", "defaultBackend": backend}))
    (found,) = [each for each in (await harness.ask("doctor"))[1]["checks"] if each["name"] == "ingress-class"]
    assert (found["level"], found["message"]) == (
        "WARN",
        "IngressClass apisix does not exist; Ingresses may refer to it",
    )
    assert found["fix"] == (
        "create IngressClass apisix with spec.controller apisix.apache.org/apisix-ingress-controller"
    )


async def test_doctor_reports_a_webhook_that_is_not_registered(harness: SurveyHarness) -> None:
    config = json.loads((harness.cli.folder / harness.config).read_text())
    config["webhook"] = {"enabled": True, "cert_file": "tls.crt", "key_file": "tls.key"}
    harness.cli.write(harness.config, json.dumps(config))
    assert (await harness.checks())["webhook"] == [("WARN", "it is served, but not registered")]


async def test_doctor_checks_no_leader_without_election(harness: SurveyHarness) -> None:
    config = json.loads((harness.cli.folder / harness.config).read_text())
    config["kubernetes"]["election"]["enabled"] = False
    harness.cli.write(harness.config, json.dumps(config))
    assert (await harness.checks())["leader"] == [("OK", "leader election is disabled: run a single replica only")]


@pytest.mark.parametrize(
    ("version", "level", "want"),
    [
        ("v1.20.3", "WARN", "its version is v1.20.3"),
        ("v1.34.0", "OK", "reachable, version v1.34.0"),
        ("", "OK", "reachable, version unknown"),
    ],
)
async def test_doctor_reports_outdated_api_servers(harness: SurveyHarness, version: str, level: str, want: str) -> None:
    body = json.dumps({"gitVersion": version})
    harness.server.faults.append(Fault(status=200, body=body, when=lambda seen: seen.path == "/version"))
    assert (await harness.checks())["api-server"] == [(level, want)]


async def test_doctor_warns_of_ingresses_without_an_address(harness: SurveyHarness) -> None:
    assert (await harness.checks())["ingress-address"] == [("SKIP", "there are no Ingresses")]
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    harness.server.put(
        plain("Ingress", "web", spec={"ingressClassName": "apisix", "rules": [{"http": {"paths": paths}}]})
    )
    ((level, message),) = (await harness.checks())["ingress-address"]
    assert (level, message.startswith("the ADDRESS of Ingresses is empty: ")) == ("WARN", True)


async def test_doctor_warns_of_gateways_that_cannot_reach_themselves(harness: SurveyHarness) -> None:
    assert (await harness.checks())["gateway-loopback"] == [("SKIP", "there are no Gateways")]
