"""Stories of the log: text of users neither breaks log lines nor controls the terminal."""

import json
import re
from pathlib import Path

import pytest
import yaml

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.scene import ANNOTATION, plugin, rule
from e2e.story import Stage, condition, says

FORGED = (
    'x\n{"event": "forged"}\n2026-01-01T00:00:00Z [error    ] forged\r'
    "\x1b[2J\x1b]0;forged\x07\u202eforged\u2066\u2028forged\x85"
)
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CONSOLE_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z? \[\w+ *\] ")


def odd_objects(stage: Stage) -> list[Manifest]:
    """Return objects with control characters wherever the API server accepts them."""
    ingress = {"ingressClassName": "apisix", "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    names = ("auth-type", "upstream-scheme", "rewrite-target-regex", "http-redirect-code", "plugin-config-name")
    annotations = {ANNOTATION + name: FORGED for name in names}
    match = {"hosts": [stage.host], "paths": ["/*"], "exprs": [expression(FORGED)]}
    rules = [rule(FORGED, match, plugins=[plugin(FORGED, {FORGED: FORGED}), plugin("limit-count", {"count": FORGED})])]
    rejected = [rule("r", {"paths": ["/*"]}, plugins=[plugin("limit-count", {"count": "x\nforged", "a\nforged": 1})])]
    return [
        custom("Ingress", "networking.k8s.io/v1", ingress, annotations=annotations | {"odd": FORGED}),
        custom("ApisixRoute", "apisix.apache.org/v2", {"http": rules}, annotations={"odd": FORGED}),
        custom("ApisixPluginConfig", "apisix.apache.org/v2", {"plugins": [plugin(FORGED, {})]}),
        custom("ApisixUpstream", "apisix.apache.org/v2", {"externalNodes": [{"type": "Domain", "name": FORGED}]}),
        custom("ApisixRoute", "apisix.apache.org/v2", {"http": rejected}, name="rejected"),
    ]


def expression(value: str) -> Manifest:
    return {"subject": {"scope": "Header", "name": value}, "op": "Equal", "value": value}


def custom(kind: str, version: str, spec: Manifest, *, name: str = "odd", **metadata: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def logging_as(stage: Stage, format: str) -> Controller:
    """Start a controller with a log format."""
    controller = stage.start()
    controller.stop()
    settings = yaml.safe_load(controller.config.read_text())
    settings["log"]["format"] = format
    controller.config.write_text(json.dumps(settings))
    Path(controller.process.log).write_bytes(b"")
    controller.start()
    return controller


@pytest.mark.parametrize("format", ["json", "console"])
def test_text_of_users_stays_within_its_log_line(stage: Stage, format: str) -> None:
    controller = logging_as(stage, format)
    stage.serve()
    stage.apply(odd_objects(stage))
    for kind, name in (("ApisixRoute", "odd"), ("ApisixPluginConfig", "odd"), ("ApisixUpstream", "odd")):
        reported = stage.api.wait(kind, name, says("False"), "to be refused", namespace=stage.namespace)
        assert not RAW.search(condition(reported)["message"].replace("\n", "\x00"))
    stage.wait_route(says("False"), "to be rejected by the gateway", "rejected")
    wanted = [f"{kind} {stage.namespace}/odd" for kind in ("Ingress", "ApisixRoute", "ApisixUpstream")]
    log = controller.process.log
    wait_until(log.read_text, lambda text: all(name in text for name in wanted), "the log to name each object")
    assert controller.stop() == 0
    text = log.read_bytes().decode()
    assert not RAW.search(text)
    assert "forged" in text
    for line in text.splitlines():
        if format == "json":
            assert json.loads(line)["event"] != "forged"
        else:
            assert CONSOLE_LINE.match(line)
            assert not line.startswith("2026-01-01T00:00:00Z")
