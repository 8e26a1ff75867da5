"""From apisix-ingress-controller 2.x on the same gateways: its records are replaced without a wrong response.

`records_of_2x.json` was recorded from a gateway with APISIX 3.18 that the controller (commit d510f665, 2026-08-18) and
ADC (0.28, commit 1c37ce4) had filled for the objects below.
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from trustme import CA

from e2e.cluster.client import Manifest, wait_until
from e2e.definitions.gateway_kinds import CONTROLLER, gateway
from e2e.definitions.gateway_kinds import make as make_gateway_object
from e2e.stories.changes.test_ingress_status import ingress
from e2e.stories.operation.test_commands import Shell, shell
from e2e.story import Stage, says
from e2e.traffic import RequestLoop

pytestmark = pytest.mark.usefixtures("gateway_kinds")

RECORDED = Path(__file__).with_name("records_of_2x.json")
ORDER = ("upstreams", "services", "routes", "ssls", "consumers", "global_rules", "plugin_metadata")


def objects(stage: Stage) -> list[Manifest]:
    """Return the objects of the recorded records, with the hosts of the story."""
    rules = [
        {
            "name": "a",
            "match": {"hosts": [f"route.{stage.host}"], "paths": ["/*"]},
            "backends": [{"serviceName": "web", "servicePort": 80}],
            "plugins": [{"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {"X-B": "c"}}}}],
        },
        {
            "name": "guarded",
            "match": {"hosts": [f"route.{stage.host}"], "paths": ["/private/*"]},
            "backends": [{"serviceName": "api", "servicePort": 80}],
            "authentication": {"enable": True, "type": "keyAuth"},
        },
    ]
    both = [{"name": "web", "port": 80, "weight": 50}, {"name": "api", "port": 80, "weight": 50}]
    exact = {"matches": [{"path": {"type": "Exact", "value": "/exact"}}], "backendRefs": both[1:]}
    split = make_gateway_object(
        "HTTPRoute",
        "split",
        parentRefs=[{"name": "gw"}],
        hostnames=[f"split.{stage.host}"],
        rules=[{"backendRefs": both}, exact],
    )
    pair = CA().issue_cert(f"route.{stage.host}")
    certificate = {
        "tls.crt": pair.cert_chain_pems[0].bytes().decode(),
        "tls.key": pair.private_key_pem.bytes().decode(),
    }
    return [
        make_gateway_object("GatewayClass", "apisix", controllerName=CONTROLLER),
        gateway(),
        split,
        custom("ApisixRoute", "web", http=rules),
        ingress(f"ingress.{stage.host}", name="shop"),
        custom("ApisixConsumer", "jack", authParameter={"keyAuth": {"value": {"key": "jack-key"}}}),
        custom(
            "ApisixGlobalRule",
            "global",
            plugins=[{"name": "real-ip", "enable": True, "config": {"source": "arg_realip"}}],
        ),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "stringData": certificate},
        custom("ApisixTls", "tls", hosts=[f"route.{stage.host}"], secret={"name": "tls", "namespace": stage.namespace}),
    ]


def custom(kind: str, name: str, **spec: object) -> Manifest:
    return {"apiVersion": "apisix.apache.org/v2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def fill(stage: Stage) -> None:
    """Write the recorded records to the gateway, for the namespace, hosts and Pods of the story."""
    text = RECORDED.read_text()
    for name, old in (("web", "203.0.113.1"), ("api", "203.0.113.2")):
        pod = stage.pods.create(name)
        stage.pods.service(name, {"app": name})
        stage.pods.wait_published(name, 1)
        text = text.replace(f'"host": "{old}",\n     "weight"', f'"host": "{pod.address}",\n     "weight"')
        text = text.replace(f'"{old}"', f'"{pod.address}"').replace('"port": 8080', f'"port": {pod.ports["http"]}')
    records = json.loads(text.replace("example.org", stage.host))
    for name in {*names(records)}:
        here = name.replace("default", stage.namespace)
        text = text.replace(f'"{crc(name)}"', f'"{crc(here)}"').replace(f'"{name}"', f'"{here}"')
    user = f"{stage.namespace}_jack".replace("-", "_")
    text = text.replace('"default_jack"', f'"{user}"').replace('"default"', f'"{stage.namespace}"')
    records = json.loads(text.replace("example.org", stage.host))
    for kind in ORDER:
        for record in records[kind]:
            body = {name: value for name, value in record.items() if name != "id"}
            id_ = record["username"] if kind == "consumers" else record["id"]
            if kind == "ssls":
                body = {**body, **pair_for(f"route.{stage.host}")}
            stage.gateway.put(f"/{kind}/{id_}", body)


def names(records: Any) -> Iterator[str]:
    """Yield the names from which 2.x makes IDs."""
    yield "ApisixTls_default_tls"
    yield from (record["name"] for found in records.values() for record in found if "name" in record)


def crc(name: str) -> str:
    return f"{zlib.crc32(name.encode()):x}"


def pair_for(host: str) -> Manifest:
    pair = CA().issue_cert(host)
    return {"cert": pair.cert_chain_pems[0].bytes().decode(), "key": pair.private_key_pem.bytes().decode()}


def plan(ask: Shell) -> list[tuple[str, str]]:
    """Return what `replace-2x` would do to each record."""
    return [(item["act"], item["record"]) for item in ask.json("replace-2x")[1]["records"]]


def test_records_of_2x_are_replaced_without_a_wrong_response(stage: Stage, tmp_path: Path) -> None:
    fill(stage)
    hosts = [f"{name}.{stage.host}" for name in ("route", "ingress", "split")]
    for host in hosts:
        stage.traffic.until_status(200, host)
    with ExitStack() as loops:
        open_ = [loops.enter_context(RequestLoop(stage.traffic, host)) for host in hosts]
        guarded = loops.enter_context(RequestLoop(stage.traffic, hosts[0], "/private/x"))
        stage.start(sync={"audit_interval": "1s"})
        stage.apply(objects(stage))
        ask = shell(stage, tmp_path)
        assert ask("replace-2x").returncode == 1
        wait_until(lambda: plan(ask), lambda found: not any(act == "keep" for act, _ in found), "its own records", 30.0)
        got = ask("replace-2x", "--apply")
        assert (got.returncode, got.stderr) == (0, "")
        stage.wait_route(says("True"), "to be synced")
        assert ask("replace-2x").stdout.endswith("no records of 2.x\n")
        assert ask("replace-2x").returncode == 0
    assert [loop.failures for loop in open_] == [[], [], []]
    assert {answer.status for _, answer in guarded.answers} == {401}
    assert stage.traffic.send(hosts[0], "/private/x", headers={"apikey": "jack-key"}).status == 200

    assert stage.gateway.records("services") == {}
    for kind in ("routes", "upstreams", "ssls", "consumers"):
        found = stage.gateway.records(kind).values()
        assert {each["labels"]["managed-by"] for each in found} == {"apisix-ingress-controller"}
        assert not [each for each in found if "manager-by" in each["labels"]]
    rules = [*stage.gateway.records("global_rules").values()]
    # No object has the second plugin, so its rule may be that of another client.
    assert sorted(name for each in rules for name in each["plugins"]) == ["real-ip", "request-id"]


def test_records_whose_objects_are_not_served_stay(stage: Stage, tmp_path: Path) -> None:
    fill(stage)
    stage.start()
    ask = shell(stage, tmp_path)
    status, found = ask.json("replace-2x", "--apply")
    assert (status, {each["act"] for each in found["records"]}) == (1, {"keep"})
    stage.traffic.until_status(200, f"route.{stage.host}")
