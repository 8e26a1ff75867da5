"""Objects of the Gateway API: their authors are warned, and nothing is denied."""

from __future__ import annotations

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, KubeObject, Meta
from apisix_ingress.webhook.checks.all_checks import Checks
from apisix_ingress.webhook.review import ALLOWED, Verdict
from tests.factories import make_service
from tests.unit.apisix_ingress.webhook.worlds import make_checks, make_review, manifest
from translation.core.options import Options


def custom(kind: str, name: str, namespace: str = "default", **spec: object) -> CustomObject:
    return CustomObject(Meta(kind, namespace, name), spec)


LISTENER = {"name": "http", "port": 80, "protocol": "HTTP"}
SERVED: tuple[KubeObject, ...] = (
    custom("GatewayClass", "apisix", "", controllerName=Options().ingress_class_controller),
    custom("Gateway", "gw", gatewayClassName="apisix", listeners=[LISTENER]),
)
ROUTE: JsonObject = {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}


def ask(checks: Checks, kind: str, spec: JsonObject, old: JsonObject | None = None) -> Verdict:
    before = manifest(old, kind=kind) if old is not None else None
    return checks.verdict(make_review(manifest(spec, kind=kind), before, group=RESOURCES[kind].group))


def test_a_valid_route_gets_no_warning() -> None:
    assert ask(make_checks(make_service(), *SERVED), "HTTPRoute", ROUTE) == ALLOWED


def test_a_missing_backend_and_an_unsupported_field_are_warnings() -> None:
    wrong = {**ROUTE, "rules": [{**ROUTE["rules"][0], "retry": {"attempts": 2}}]}
    found = ask(make_checks(*SERVED), "HTTPRoute", wrong)
    assert found.allowed
    assert {each.split(":")[0] for each in found.warnings} == {"spec.rules[0]", "spec.rules[0].backendRefs[0]"}


def test_clients_that_may_not_learn_about_other_objects_are_warned_about_their_own() -> None:
    checks = make_checks(*SERVED)
    checks = Checks(checks.world, checks.options, checks.books, checks.now, shows_others=False)
    assert ask(checks, "HTTPRoute", ROUTE) == ALLOWED
    assert len(ask(checks, "HTTPRoute", {**ROUTE, "rules": "none"}).warnings) == 1


def test_objects_of_other_controllers_are_not_judged() -> None:
    assert ask(make_checks(), "HTTPRoute", {**ROUTE, "rules": "none"}) == ALLOWED
    assert ask(make_checks(), "Gateway", {"gatewayClassName": "theirs"}) == ALLOWED


def test_an_object_that_did_not_change_is_not_judged() -> None:
    assert ask(make_checks(*SERVED), "HTTPRoute", ROUTE, ROUTE) == ALLOWED


def test_nothing_is_judged_without_the_gateway_api() -> None:
    assert ask(make_checks(options=Options(gateway_api=False)), "HTTPRoute", ROUTE) == ALLOWED


TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web", "sectionName": "none"}
STREAM = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "tcp"}
SERVICE = {"group": "", "kind": "Service", "name": "web"}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Gateway", {"gatewayClassName": "apisix", "listeners": [{**LISTENER, "protocol": "QUIC"}]}),
        ("GRPCRoute", ROUTE | {"parentRefs": [{"name": "gw", "sectionName": "none"}]}),
        ("TCPRoute", ROUTE),
        ("HTTPRoutePolicy", {"targetRefs": [TARGET]}),
        ("L4RoutePolicy", {"targetRefs": [STREAM], "plugins": 1}),
        ("BackendTrafficPolicy", {"targetRefs": [SERVICE], "retries": -1}),
        ("Consumer", {"gatewayRef": {"name": "gw"}, "credentials": [{"type": "other"}]}),
    ],
)
def test_every_kind_is_judged(kind: str, spec: JsonObject) -> None:
    tcp = custom("TCPRoute", "tcp", **ROUTE)
    found = ask(make_checks(make_service(), custom("HTTPRoute", "web", **ROUTE), tcp, *SERVED), kind, spec)
    assert found.allowed
    assert len(found.warnings) >= 1
