"""Which controller serves an object: its class and its namespace."""

import pytest

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Service
from tests.unit.translation.objects import get, ingress, make, route, service, world
from translation.core.options import Options
from translation.core.scope import CLASS_ANNOTATION, is_ours
from translation.nginx.options import CONTROLLER, NginxOptions
from translation.serving import why_left_out

OURS = "apisix.apache.org/apisix-ingress-controller"


def ingress_class(name: str, controller: str = OURS, *, default: bool = False) -> JsonObject:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else {}
    return make("IngressClass", name, namespace="", annotations=annotations, spec={"controller": controller})


@pytest.mark.parametrize(
    ("configured", "name", "want"),
    [
        ("apisix-and-all", "", True),
        ("apisix-and-all", "other", True),
        ("apisix", "", True),
        ("apisix", "apisix", True),
        ("apisix", "other", False),
        ("", "", False),
        ("", "apisix", False),
    ],
)
def test_a_custom_resource_is_handled_by_its_class(configured: str, name: str, want: bool) -> None:
    found = world(route(ingressClassName=name))
    got = is_ours(get(found, "ApisixRoute", "route"), found.view(), Options(ingress_class=configured))
    assert got is want


def test_a_class_that_is_not_text_is_treated_as_absent() -> None:
    found = world(route(ingressClassName=7))
    assert is_ours(get(found, "ApisixRoute", "route"), found.view(), Options(ingress_class="apisix"))


@pytest.mark.parametrize(
    ("configured", "spec", "annotation", "want"),
    [
        ("apisix-and-all", "apisix", "", True),
        ("apisix-and-all", "other", "", False),
        ("apisix-and-all", "", "", False),
        ("gw", "gw", "", True),
        ("gw", "apisix", "", False),
        ("apisix-and-all", "other", "apisix", True),
        ("apisix-and-all", "apisix", "other", False),
    ],
)
def test_the_annotation_of_an_ingress_overrides_its_class(
    configured: str, spec: str, annotation: str, want: bool
) -> None:
    annotations = {CLASS_ANNOTATION: annotation} if annotation else {}
    found = world(ingress(ingressClassName=spec, annotations=annotations))
    got = is_ours(get(found, "Ingress", "ing"), found.view(), Options(ingress_class=configured))
    assert got is want


@pytest.mark.parametrize(("controller", "want"), [(OURS, True), ("k8s.io/ingress-nginx", False)])
def test_an_ingress_class_of_this_controller_is_handled_under_any_name(controller: str, want: bool) -> None:
    found = world(ingress(ingressClassName="edge"), route(ingressClassName="edge"), ingress_class("edge", controller))
    options = Options(ingress_class="apisix")
    assert is_ours(get(found, "Ingress", "ing"), found.view(), options) is want
    assert is_ours(get(found, "ApisixRoute", "route"), found.view(), options) is want


@pytest.mark.parametrize(
    ("classes", "want"),
    [
        ([ingress_class("edge", default=True)], True),
        ([ingress_class("edge")], False),
        ([ingress_class("nginx", "k8s.io/ingress-nginx", default=True)], False),
        ([], False),
    ],
)
def test_an_ingress_without_class_is_handled_by_the_default_class(classes: list[JsonObject], want: bool) -> None:
    found = world(ingress(ingressClassName=""), *classes)
    assert is_ours(get(found, "Ingress", "ing"), found.view(), Options()) is want


def test_arrival_of_a_class_wakes_the_ingress_that_names_it() -> None:
    found = world(ingress(ingressClassName="edge"))
    view = found.view()
    is_ours(get(found, "Ingress", "ing"), view, Options())
    assert [str(read) for read in view.reads] == ["IngressClass edge"]


@pytest.mark.parametrize(
    ("namespaces", "want"),
    [
        ([make("Namespace", "default", namespace="", labels={"watch": "yes"})], True),
        ([make("Namespace", "default", namespace="", labels={"watch": "no"})], False),
        ([], False),
    ],
)
def test_a_namespace_selector_uses_current_labels(namespaces: list[JsonObject], want: bool) -> None:
    found = world(route(), *namespaces)
    options = Options(namespace_selector=parse_selector("watch=yes"))
    assert is_ours(get(found, "ApisixRoute", "route"), found.view(), options) is want


def test_cluster_scoped_object_is_in_every_selection() -> None:
    found = world(make("ApisixRoute", "route", namespace="", spec={}))
    options = Options(namespace_selector=parse_selector("watch=yes"))
    assert is_ours(get(found, "ApisixRoute", "route", ""), found.view(), options)


def test_kinds_without_class_are_handled() -> None:
    found = world(service())
    (item,) = found.stores["Service"].values()
    assert isinstance(item, Service)
    assert is_ours(item, found.view(), Options(ingress_class=""))


OFF = "ingress class {} belongs to ingress-nginx: set ingress_nginx.enabled to true to serve it"
MISSING = "there is no IngressClass traefik: correct spec.ingressClassName, unless it is for another controller"
OTHER = "ingress class {} is served by another controller"


@pytest.mark.parametrize(
    ("classes", "spec", "annotation", "want_off", "want_on"),
    [
        ({"nginx": CONTROLLER}, "nginx", "", OFF.format("nginx"), ""),
        ({"edge": CONTROLLER}, "edge", "", OFF.format("edge"), ""),
        ({}, "", "nginx", OFF.format("nginx"), ""),
        (
            {},
            "nginx",
            "",
            OFF.format("nginx"),
            f"IngressClass nginx does not exist: create it with spec.controller {CONTROLLER}",
        ),
        ({"nginx": "nginx.org/ingress-controller"}, "nginx", "", OTHER.format("nginx"), OTHER.format("nginx")),
        ({}, "traefik", "", MISSING, MISSING),
        ({}, "", "traefik", OTHER.format("traefik"), OTHER.format("traefik")),
        ({}, "", "", "it has no class", "it has no class"),
    ],
)
def test_ingress_for_ingress_nginx_is_left_out_unless_it_is_enabled(
    classes: dict[str, str], spec: str, annotation: str, want_off: str, want_on: str
) -> None:
    annotations = {CLASS_ANNOTATION: annotation} if annotation else {}
    objects = [ingress_class(name, controller) for name, controller in classes.items()]
    found = world(ingress(ingressClassName=spec, annotations=annotations), *objects)
    item = get(found, "Ingress", "ing")
    got = [why_left_out(item, found.view(), Options(nginx=nginx)) for nginx in (None, NginxOptions())]
    assert got == [want_off, want_on]


def test_annotation_of_another_class_of_ingress_nginx_is_left_out() -> None:
    found = world(ingress(annotations={CLASS_ANNOTATION: "nginx"}))
    options = Options(nginx=NginxOptions(ingress_class="edge"))
    assert why_left_out(get(found, "Ingress", "ing"), found.view(), options) == OTHER.format("nginx")
