"""The missing steps while no route is served, and the next command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.diagnostics.empty_state import Hint, class_name, empty_state
from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX
from apisix_ingress.model.kinds.table import RESOURCES, kinds_with
from tests.unit.translation.objects import ingress, make, route
from translation.core.options import Options
from translation.core.scope import CLASS_ANNOTATION

DEFAULTS = Options()
CREATE = "kubectl create ingress web --class=apisix --rule='shop.example.org/*=web:80'"
OURS = "apisix.apache.org/apisix-ingress-controller"
OFF = "ingress class nginx belongs to ingress-nginx: set ingress_nginx.enabled to true to serve it"


def ingress_class(name: str, controller: str = OURS) -> dict[str, Any]:
    return make("IngressClass", name, namespace="", spec={"controller": controller})


def hint(*objects: dict[str, Any], options: Options = DEFAULTS) -> Hint:
    world = settle((RESOURCES[each["kind"]].decode(each) for each in objects), options).world
    return empty_state(world, options)


def test_without_objects_the_next_command_creates_one() -> None:
    *first, last = kinds_with(MATCHER_INDEX)
    want = f"There is no {', '.join(first)} or {last} yet."
    assert hint() == Hint(want, CREATE)
    assert hint(make("Service", "web")) == Hint(want, CREATE)
    assert hint(ingress_class("edge")) == Hint(want, CREATE.replace("apisix", "edge"))
    assert hint(options=Options(ingress_class="")) == Hint(
        f"{want} Create an IngressClass with spec.controller {OURS}."
    )


def test_served_objects_need_no_hint() -> None:
    broken = route(http=[{"name": "r"}])
    for item in (ingress(ingressClassName="apisix"), broken):
        assert hint(item) == Hint()


@pytest.mark.parametrize(
    ("item", "why", "command"),
    [
        (
            ingress(ingressClassName=""),
            "Ingress default/ing: it has no class",
            'kubectl -n default patch ingresses ing --type=merge -p \'{"spec":{"ingressClassName":"apisix"}}\'',
        ),
        (ingress(ingressClassName="nginx"), f"Ingress default/ing: {OFF}", "apisix-ingress migrate"),
        (
            ingress(annotations={CLASS_ANNOTATION: "traefik"}),
            "Ingress default/ing: ingress class traefik is served by another controller",
            CREATE,
        ),
    ],
)
def test_an_object_of_another_class_is_named_with_the_reason(item: dict[str, Any], why: str, command: str) -> None:
    want = f"1 object defines routes, but it is not served by this controller: {why}."
    assert hint(item) == Hint(want, command)


def test_many_objects_are_grouped_by_reason_and_the_most_useful_command_is_chosen() -> None:
    others = [
        {**ingress(ingressClassName="traefik"), "metadata": {"name": f"i{each}", "namespace": "a"}}
        for each in range(1200)
    ]
    got = hint(*others[:150], ingress(ingressClassName="nginx"), *others[150:])
    assert got.text == (
        "1,201 objects define routes, but none is served by this controller: Ingress a/i0: there is no"
        " IngressClass traefik: correct spec.ingressClassName, unless it is for another controller;"
        f" Ingress default/ing: {OFF}."
    )
    assert got.command == "apisix-ingress migrate"


def test_other_namespaces_and_a_missing_class_are_reported() -> None:
    elsewhere = Options(namespace_selector=parse_selector("team=a"))
    assert hint(ingress(ingressClassName="apisix"), options=elsewhere) == Hint(
        "1 object defines routes, but it is not served by this controller: Ingress default/ing: its namespace is not"
        " selected.",
        "kubectl get namespaces --show-labels",
    )
    got = hint(ingress(ingressClassName="x"), options=Options(ingress_class=""))
    assert got.text.endswith(f"Create an IngressClass with spec.controller {OURS}.")
    assert got.command == ""


def test_the_class_in_commands_is_the_configured_one_or_the_first_of_this_controller() -> None:
    for names, configured, want in [
        ((), "apisix-and-all", "apisix"),
        (("b", "a"), "apisix-and-all", "a"),
        (("apisix", "a"), "apisix-and-all", "apisix"),
        ((), "edge", "edge"),
        ((), "", ""),
    ]:
        options = replace(Options(), ingress_class=configured)
        world = settle((RESOURCES["IngressClass"].decode(ingress_class(each)) for each in names), options).world
        assert class_name(world, options) == want
