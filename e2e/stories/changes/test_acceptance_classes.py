"""Which objects are handled, depending on their class: each kind with the controller's class, another one, and none."""

import secrets
from typing import Any

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.everything import NAMESPACED, certificate, count, custom, statuses
from e2e.story import Stage, route

CLASSES = ("apisix", "other", "")
PLUGINS = {"apisix": "gzip", "other": "cors", "": "request-id"}
"""A gateway accepts a plugin in one global rule only."""


def of_class(stage: Stage, kind: str, name: str) -> Manifest:
    """Return an object of a kind with the class `name`; an object without a class is named `none`."""
    plugins = [{"name": PLUGINS[name], "enable": True}]
    own = name or "none"
    specs: dict[str, dict[str, Any]] = {
        "ApisixRoute": route(stage.host, path=f"/{own}")["spec"],
        "ApisixUpstream": {"externalNodes": [{"type": "Domain", "name": "192.0.2.1"}]},
        "ApisixTls": {"hosts": [f"{own}.{stage.host}"], "secret": {"name": "web", "namespace": stage.namespace}},
        "ApisixConsumer": {"authParameter": {"keyAuth": {"value": {"key": secrets.token_hex(8)}}}},
        "ApisixConsumerGroup": {"plugins": plugins},
        "ApisixProto": {"content": 'syntax = "proto3";'},
        "ApisixPluginConfig": {"plugins": plugins},
        "ApisixGlobalRule": {"plugins": plugins},
    }
    return custom(kind, own, **specs[kind], **({"ingressClassName": name} if name else {}))


@pytest.fixture
def all_classes(stage: Stage) -> Stage:
    """An environment with an object of every kind and class."""
    stage.serve()
    stage.apply(certificate("web", f"*.{stage.host}"))
    stage.apply([of_class(stage, kind, name) for kind in NAMESPACED for name in CLASSES])
    return stage


def wait_handled(stage: Stage, *names: str) -> None:
    """Wait until exactly the objects with these names have a condition."""
    want = {f"{kind} {name}": "True" for kind in NAMESPACED for name in names}
    wait_until(
        lambda: {key: said for key, said in statuses(stage).items() if said},
        lambda got: got == want,
        f"{names} to be handled",
    )
    # An ApisixUpstream has a record only if a route uses it.
    kinds = ("routes", "ssls", "consumers", "plugin_configs", "global_rules")
    assert {kind: count(stage.gateway, kind) for kind in kinds} == dict.fromkeys(kinds, len(names))


def test_a_custom_class_serves_its_objects_and_objects_without_a_class(all_classes: Stage) -> None:
    all_classes.start(kubernetes={"ingress_class": "apisix"})
    wait_handled(all_classes, "apisix", "none")
    assert all_classes.traffic.until_status(200, all_classes.host, "/apisix").pod == "web"
    assert all_classes.traffic.send(all_classes.host, "/other").status == 404


def test_an_object_is_handled_after_its_class_changes_to_ours(all_classes: Stage) -> None:
    all_classes.start(kubernetes={"ingress_class": "apisix"})
    wait_handled(all_classes, "apisix", "none")
    for kind in NAMESPACED:
        all_classes.api.patch(kind, "other", {"spec": {"ingressClassName": "apisix"}}, namespace=all_classes.namespace)
    wait_handled(all_classes, "apisix", "none", "other")
    all_classes.traffic.until_status(200, all_classes.host, "/other")


def test_by_default_custom_resources_of_every_class_are_handled(all_classes: Stage) -> None:
    all_classes.start()
    wait_handled(all_classes, "apisix", "none", "other")
    for path in ("/apisix", "/none", "/other"):
        all_classes.traffic.until_status(200, all_classes.host, path)
