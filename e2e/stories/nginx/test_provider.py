"""Ingresses of ingress-nginx alongside a live ingress-nginx: they are served and not modified."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.stories.changes.test_ingress_status import ONE, show, wait_event
from e2e.story import Stage, put_paths

PREFIX = "nginx.ingress.kubernetes.io"


def ingress(stage: Stage, name: str = "web", path: str = "/", **annotations: str) -> Manifest:
    """Return an Ingress of ingress-nginx; underscores in names of annotations become dashes."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    given = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "annotations": given},
        "spec": {"ingressClassName": stage.namespace, "rules": [{"host": stage.host, "http": {"paths": paths}}]},
    }


def start(stage: Stage, **settings: Any) -> Controller:
    """Start a controller that serves the class of the namespace, which a live ingress-nginx would have created."""
    controller = f"k8s.io/{stage.namespace}"
    spec = {"controller": controller}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": stage.namespace}}
    stage.api.apply({**kind, "spec": spec})
    section = {"enabled": True, "controller_class": controller, "config_map": f"{stage.namespace}/nginx", **settings}
    return stage.start(ingress_nginx=section, kubernetes={"status": {"addresses": ["192.0.2.99"]}})


def config(stage: Stage, **data: str) -> None:
    """Write the ConfigMap of ingress-nginx."""
    given = {key.replace("_", "-"): text for key, text in data.items()}
    stage.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nginx"}, "data": given})


def test_an_ingress_of_nginx_is_served_and_its_status_is_not_written(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, rewrite_target="/new"))
    show(stage, "Ingress", "web", ONE)

    start(stage)

    assert stage.traffic.until_status(200, stage.host, "/old").seen["path"] == "/new"
    item = stage.api.get("Ingress", "web", namespace=stage.namespace)
    assert item is not None
    assert item["status"]["loadBalancer"]["ingress"] == [ONE]


def test_annotations_that_the_configmap_forbids_are_not_served(stage: Stage) -> None:
    stage.serve()
    config(stage, annotations_risk_level="Medium")
    stage.apply([ingress(stage), ingress(stage, "risky", "/risky", upstream_hash_by="$remote_addr")])
    start(stage)
    stage.traffic.until_status(200, stage.host)
    wait_event(stage, "risky", "NginxNotServed")
    config(stage, annotation_value_word_blocklist="secret")
    stage.apply(ingress(stage, "risky", "/risky", upstream_vhost="the-secret.test"))
    wait_event(stage, "risky", "NginxNotServed")
    stage.apply(ingress(stage, "risky", "/risky", upstream_vhost="open.test"))
    stage.traffic.until(lambda answer: answer.received("host") == "open.test", stage.host, "/risky")
    config(stage, annotation_value_word_blocklist="open")
    stage.traffic.until(lambda answer: answer.received("host") == stage.host, stage.host, "/risky")


def test_a_change_of_the_configmap_takes_effect(stage: Stage) -> None:
    stage.serve()
    config(stage)
    stage.apply(ingress(stage, permanent_redirect="https://new.test"))
    stage.apply(ingress(stage, "blocked", "/x"))
    start(stage)
    stage.traffic.until_status(200, stage.host, "/x")

    config(stage, block_user_agents="~*.*")

    stage.traffic.until_status(403, stage.host, "/x", headers={"User-Agent": "any"})


def test_an_event_names_unsupported_settings_and_the_rest_of_the_host_is_served(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage))
    stage.apply(ingress(stage, "closed", "/closed", enable_modsecurity="true"))

    start(stage)

    stage.traffic.until_status(200, stage.host, "/")
    stage.traffic.until_status(503, stage.host, "/closed")
    wait_event(stage, "closed", "Warning")


def warnings_about(stage: Stage, name: str) -> list[tuple[str, str]]:
    """Return reason and message of the warnings about an Ingress, by time."""
    events = stage.api.events(name, namespace=stage.namespace)
    return [(each["reason"], each["message"]) for each in events if each["type"] == "Warning"]


def until_created_before_now(stage: Stage, name: str) -> None:
    """Wait for the second after an Ingress was created: a process started later recognizes it as older than itself."""
    item = stage.api.get("Ingress", name, namespace=stage.namespace)
    assert item is not None
    created = datetime.fromisoformat(item["metadata"]["creationTimestamp"])
    wait_until(
        lambda: datetime.now(UTC).replace(microsecond=0), lambda now: now > created, f"the second after {created}"
    )


def test_annotations_without_effect_are_on_the_page_and_in_one_event_for_each_version(stage: Stage) -> None:
    field = f"metadata.annotations[{PREFIX}/%s]: "
    unknown = f"{field % 'proxy-reed-timeout'}unknown annotation: it has no effect; correct its name or remove it"
    buffers = f"{field % 'proxy-max-temp-file-size'}has no effect: Sizes of buffers are settings of the whole gateway"
    stage.serve()
    first = start(stage)
    stage.apply(ingress(stage, proxy_reed_timeout="60", proxy_max_temp_file_size="1m"))
    stage.traffic.until_status(200, stage.host, "/")
    wait_event(stage, "web", "NginxNoEffect")
    ((_, message),) = warnings_about(stage, "web")
    assert unknown in message
    assert buffers in message
    status, body = first.probe("/status/api/problems")
    shown = [(each["code"], each["severity"]) for each in json.loads(body)["items"]]
    assert (status, shown) == (200, [("NginxNoEffect", "warning")] * 2)
    first.stop()

    until_created_before_now(stage, "web")
    start(stage)
    stage.apply(ingress(stage, "late", "/late", foo="bar"))
    wait_event(stage, "late", "NginxNoEffect")
    assert warnings_about(stage, "web") == [("NginxNoEffect", message)]

    stage.apply(ingress(stage, proxy_reed_timeout="60"))
    stage.api.wait(
        "Ingress", "web", lambda _: len(warnings_about(stage, "web")) == 2, "a new Event", namespace=stage.namespace
    )
    assert {each for _, each in warnings_about(stage, "web")} == {message, unknown}


def test_a_restart_writes_nothing(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, enable_cors="true"))
    first = start(stage)
    stage.traffic.until_status(200, stage.host, "/")
    first.stop()
    before = len(put_paths(stage.gateway))

    start(stage)

    stage.traffic.until_status(200, stage.host, "/")
    assert put_paths(stage.gateway)[before:] == []
