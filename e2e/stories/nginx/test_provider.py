"""Ingresses of ingress-nginx beside a live ingress-nginx: they are served, and nothing in them is changed."""

from __future__ import annotations

from typing import Any

from e2e.cluster.client import Manifest
from e2e.controller import Controller
from e2e.stories.changes.test_ingress_status import ONE, show, wait_event
from e2e.story import Stage, put_paths

PREFIX = "nginx.ingress.kubernetes.io"


def ingress(stage: Stage, name: str = "web", path: str = "/", **annotations: str) -> Manifest:
    """Return an Ingress of ingress-nginx; underscores in names of annotations are dashes."""
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
    """Start a controller that serves the class of the namespace, which a live ingress-nginx would have made."""
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


def test_an_ingress_of_nginx_is_served_and_its_status_is_left_alone(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage, rewrite_target="/new"))
    show(stage, "Ingress", "web", ONE)

    start(stage)

    assert stage.traffic.until_status(200, stage.host, "/old").seen["path"] == "/new"
    item = stage.api.get("Ingress", "web", namespace=stage.namespace)
    assert item is not None
    assert item["status"]["loadBalancer"]["ingress"] == [ONE]


def test_a_change_of_the_configmap_takes_effect(stage: Stage) -> None:
    stage.serve()
    config(stage)
    stage.apply(ingress(stage, permanent_redirect="https://new.test"))
    stage.apply(ingress(stage, "blocked", "/x"))
    start(stage)
    stage.traffic.until_status(200, stage.host, "/x")

    config(stage, block_user_agents="~*.*")

    stage.traffic.until_status(403, stage.host, "/x", headers={"User-Agent": "any"})


def test_what_is_not_served_is_named_in_an_event_and_the_rest_of_the_host_is_served(stage: Stage) -> None:
    stage.serve()
    stage.apply(ingress(stage))
    stage.apply(ingress(stage, "closed", "/closed", enable_modsecurity="true"))

    start(stage)

    stage.traffic.until_status(200, stage.host, "/")
    stage.traffic.until_status(503, stage.host, "/closed")
    wait_event(stage, "closed", "Warning")


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
