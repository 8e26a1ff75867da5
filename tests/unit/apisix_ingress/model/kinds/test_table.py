"""The table of kinds."""

from typing import Any

import pytest

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.indexes import DEFAULT_CLASS, GRANTS_BY_NAMESPACES, PLUGIN_INDEX, SLICES_BY_SERVICE
from apisix_ingress.model.kinds.table import RESOURCES
from tests.factories import make_ingress_class, make_slice


@pytest.mark.parametrize(
    ("kind", "api_version", "collection"),
    [
        ("Service", "v1", "/api/v1/namespaces/ns/services"),
        ("Namespace", "v1", "/api/v1/namespaces"),
        ("Ingress", "networking.k8s.io/v1", "/apis/networking.k8s.io/v1/namespaces/ns/ingresses"),
        ("IngressClass", "networking.k8s.io/v1", "/apis/networking.k8s.io/v1/ingressclasses"),
        ("EndpointSlice", "discovery.k8s.io/v1", "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"),
        ("ApisixRoute", "apisix.apache.org/v2", "/apis/apisix.apache.org/v2/namespaces/ns/apisixroutes"),
    ],
)
def test_paths_are_those_of_the_api_server(kind: str, api_version: str, collection: str) -> None:
    resource = RESOURCES[kind]
    assert (resource.api_version, resource.path("ns")) == (api_version, collection)
    assert resource.path("ns", "web", "status") == f"{collection}/web/status"


def test_collection_over_all_namespaces_has_no_scope() -> None:
    assert RESOURCES["ApisixRoute"].path() == "/apis/apisix.apache.org/v2/apisixroutes"


@pytest.mark.parametrize("kind", sorted(RESOURCES))
def test_every_kind_decodes_its_own_objects(kind: str) -> None:
    resource = RESOURCES[kind]
    namespace = "default" if resource.namespaced else ""
    raw: dict[str, Any] = {"metadata": {"name": "web", **({"namespace": namespace} if namespace else {})}}
    assert (resource.kind, resource.decode(raw).meta.key) == (kind, ObjectKey(kind, namespace, "web"))


def test_only_custom_resources_may_be_missing() -> None:
    got = {kind for kind, resource in RESOURCES.items() if resource.optional}
    assert got == {kind for kind in RESOURCES if kind.startswith("Apisix")} | {"ReferenceGrant"} | GATEWAY_KINDS


def test_grants_have_two_versions_and_are_found_by_both_namespaces() -> None:
    resource = RESOURCES["ReferenceGrant"]
    got = [each.path() for each in resource.versions()]
    assert got == [f"/apis/gateway.networking.k8s.io/{version}/referencegrants" for version in ("v1beta1", "v1")]
    sources = [{"group": "g", "kind": "K", "namespace": name} for name in ("a", "c")]
    grant = resource.decode({"metadata": {"name": "web", "namespace": "b"}, "spec": {"from": sources}})
    assert list(resource.indexes[GRANTS_BY_NAMESPACES](grant)) == ["b/a", "b/c"]


def test_slices_are_found_by_their_service() -> None:
    index = RESOURCES["EndpointSlice"].indexes[SLICES_BY_SERVICE]
    assert (index(make_slice()), index(make_slice(service=""))) == (("default/web",), ())


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        ([{"name": "cors"}, {"name": "echo", "enable": True}, {"name": "off", "enable": False}], {"cors", "echo"}),
        ([{"name": 1}, {"enable": True}, "cors", None], set()),
        ("cors", set()),
        (None, set()),
    ],
)
def test_global_rules_are_found_by_the_plugins_that_they_enable(plugins: Any, want: set[str]) -> None:
    resource = RESOURCES["ApisixGlobalRule"]
    item = resource.decode({"metadata": {"name": "rule", "namespace": "default"}, "spec": {"plugins": plugins}})
    assert set(resource.indexes[PLUGIN_INDEX](item)) == want


def test_default_classes_are_found() -> None:
    index = RESOURCES["IngressClass"].indexes[DEFAULT_CLASS]
    assert (index(make_ingress_class(is_default=True)), index(make_ingress_class())) == (("true",), ())
