"""Decoders: raw JSON to trimmed objects."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from apisix_ingress.model import decoders
from apisix_ingress.model import objects as kube
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Endpoint, EndpointPort, EndpointSubset, ServicePort

META = {
    "name": "web",
    "namespace": "default",
    "uid": "u1",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "resourceVersion": "7",
    "labels": {"app": "web"},
    "annotations": {"a": "b"},
}


def raw(**fields: Any) -> dict[str, Any]:
    return {"metadata": META, **fields}


def test_custom_object_keeps_metadata_spec_and_status() -> None:
    got = decoders.decode_custom(raw(spec={"http": []}, status={"conditions": []}), "ApisixRoute")
    want_meta = kube.Meta(
        "ApisixRoute", "default", "web", "u1", 2, "2026-01-01T00:00:00Z", {"app": "web"}, {"a": "b"}, "7"
    )
    assert (got.meta, got.meta.resource_version) == (want_meta, "7")
    assert (got.spec, got.status) == ({"http": []}, {"conditions": []})


@pytest.mark.parametrize("odd", [None, [], "text"])
def test_spec_and_status_that_are_not_mappings_are_read_as_empty(odd: object) -> None:
    got = decoders.decode_custom(raw(spec=odd, status=odd), "ApisixRoute")
    assert (got.spec, got.status) == ({}, {})


def test_status_and_resource_version_are_never_compared() -> None:
    one = decoders.decode_custom(raw(spec={}), "ApisixRoute")
    other = decoders.decode_custom(
        {"metadata": {**META, "resourceVersion": "8"}, "spec": {}, "status": {"a": 1}}, "ApisixRoute"
    )
    assert one == other


def test_null_metadata_fields_are_read_as_empty() -> None:
    bare = {"metadata": {"name": "web", **dict.fromkeys(set(META) - {"name"})}}
    assert decoders.decode_pod(bare).meta == kube.Meta("Pod", "", "web")


def test_service_is_trimmed_to_what_translations_read() -> None:
    got = decoders.decode_service(
        raw(
            spec={
                "type": "LoadBalancer",
                "clusterIP": "10.1.2.3",
                "externalName": "example.org",
                "externalIPs": ["192.0.2.1"],
                "ipFamilies": ["IPv4", "IPv6"],
                "publishNotReadyAddresses": True,
                "ports": [{"port": 80}, {"port": 443, "name": "tls", "protocol": "UDP", "appProtocol": "https"}],
            },
            status={"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}, {"hostname": "lb.example.org"}]}},
        )
    )
    want = kube.Service(
        kube.Meta("Service", "default", "web", "u1", 2, "2026-01-01T00:00:00Z"),
        "LoadBalancer",
        "10.1.2.3",
        "example.org",
        ("192.0.2.1",),
        ("IPv4", "IPv6"),
        True,
        (ServicePort(80), ServicePort(443, "tls", "UDP", "https")),
        (("192.0.2.2", ""), ("", "lb.example.org")),
    )
    assert got == want


@pytest.mark.parametrize(("address", "want"), [("None", True), ("", True), ("10.1.2.3", False)])
def test_service_without_a_cluster_address_is_headless(address: str, want: bool) -> None:
    assert decoders.decode_service(raw(spec={"clusterIP": address})).headless is want


def test_endpoints_keep_ready_and_not_ready_addresses() -> None:
    got = decoders.decode_endpoints(
        raw(
            subsets=[
                {
                    "addresses": [
                        {"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "name": "web-0"}},
                        {"ip": "10.0.0.2"},
                    ],
                    "notReadyAddresses": [{"ip": "10.0.0.3", "targetRef": {"kind": "Node", "name": "n"}}],
                    "ports": [{"port": 8080, "name": "http"}],
                },
                {},
            ]
        )
    )
    assert got.subsets == (
        EndpointSubset(
            (
                Endpoint(("10.0.0.1",), pod="web-0"),
                Endpoint(("10.0.0.2",)),
                Endpoint(("10.0.0.3",), ready=False, serving=False),
            ),
            (EndpointPort(8080, "http"),),
        ),
        EndpointSubset((), ()),
    )
    assert decoders.decode_endpoints(raw(subsets=None)).subsets == ()


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        (None, (True, True, False)),
        ({}, (True, True, False)),
        ({"ready": None}, (True, True, False)),
        ({"ready": False}, (False, False, False)),
        ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
        ({"ready": True, "serving": False}, (True, False, False)),
    ],
)
def test_missing_conditions_of_an_endpoint_mean_ready(conditions: object, want: tuple[bool, bool, bool]) -> None:
    (got,) = decoders.decode_endpoint_slice(
        raw(endpoints=[{"addresses": ["10.0.0.1"], "conditions": conditions}])
    ).endpoints
    assert (got.ready, got.serving, got.terminating) == want


def test_a_slice_has_its_service_addresses_and_ports() -> None:
    got = decoders.decode_endpoint_slice(
        {
            "metadata": {**META, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv6",
            "endpoints": [{"addresses": ["fd00::1"], "targetRef": {"kind": "Pod", "name": "web-0"}}, {}],
            "ports": [{"port": 8080, "protocol": "UDP"}, {"name": "any", "port": None}],
        }
    )
    assert (got.service, got.address_type) == ("web", "IPv6")
    assert got.endpoints == (Endpoint(("fd00::1",), pod="web-0"), Endpoint(()))
    assert got.ports == (EndpointPort(8080, "", "UDP"),)


def test_secret_values_are_decoded_and_plain_ones_win() -> None:
    data = {"a": base64.b64encode(b"x").decode(), "b": base64.b64encode(b"y").decode(), "c": None}
    got = decoders.decode_secret(raw(type="kubernetes.io/tls", data=data, stringData={"b": "z"}))
    assert (got.type, got.data) == ("kubernetes.io/tls", {"a": b"x", "b": b"z", "c": b""})


def test_secret_values_are_in_no_repr_and_no_error() -> None:
    assert "hunter2" not in repr(decoders.decode_secret(raw(stringData={"a": "hunter2"})))
    with pytest.raises(ValueError, match="not base64") as caught:
        decoders.decode_secret(raw(data={"a": "hunter2!"}))
    assert "hunter2" not in str(caught.value)


def test_config_map_keeps_its_text() -> None:
    assert decoders.decode_config_map(raw(data={"a": "b"})).data == {"a": "b"}
    assert decoders.decode_config_map(raw()).data == {}


@pytest.mark.parametrize("decode", [decoders.decode_pod, decoders.decode_namespace])
def test_labels_are_kept_where_selectors_read_them(decode: Callable[[dict[str, Any]], kube.KubeObject]) -> None:
    assert (decode(raw()).meta.labels, decode(raw()).meta.annotations) == ({"app": "web"}, {})


@pytest.mark.parametrize(("value", "want"), [("true", True), ("false", False)])
def test_an_ingress_class_has_its_controller_and_default_flag(value: str, want: bool) -> None:
    meta = {"name": "apisix", "annotations": {"ingressclass.kubernetes.io/is-default-class": value}}
    got = decoders.decode_ingress_class({"metadata": meta, "spec": {"controller": "example.org/c"}})
    assert (got.controller, got.is_default) == ("example.org/c", want)
    assert not decoders.decode_ingress_class({"metadata": {"name": "apisix"}}).is_default


MALFORMED: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in RESOURCES),
    *((kind, {"metadata": None}) for kind in RESOURCES),
    *((kind, {"metadata": []}) for kind in RESOURCES),
    *((kind, {"metadata": {}}) for kind in RESOURCES),
    *((kind, {"metadata": {"name": 1}}) for kind in RESOURCES),
    ("Pod", {"metadata": {"name": "web", "namespace": 1}}),
    ("Pod", {"metadata": {"name": "web", "labels": ["app"]}}),
    ("Pod", {"metadata": {"name": "web", "labels": {"app": 1}}}),
    ("Ingress", {"metadata": {"name": "web", "annotations": {"a": True}}}),
    ("Ingress", {"metadata": {"name": "web", "generation": "2"}}),
    ("IngressClass", {"metadata": {"name": "web", "annotations": "default"}}),
    ("IngressClass", raw(spec=[])),
    ("Service", raw(spec=[1])),
    ("Service", raw(spec={"ports": {"port": 80}})),
    ("Service", raw(spec={"ports": ["http"]})),
    ("Service", raw(spec={"ports": [{"name": "http"}]})),
    ("Service", raw(spec={"ports": [{"port": "http"}]})),
    ("Service", raw(status="x")),
    ("Service", raw(status={"loadBalancer": {"ingress": "x"}})),
    ("Endpoints", raw(subsets="x")),
    ("Endpoints", raw(subsets=[{"addresses": [{}]}])),
    ("Endpoints", raw(subsets=[{"addresses": [{"ip": "10.0.0.1", "targetRef": "web-0"}]}])),
    ("EndpointSlice", {"metadata": {"name": "web", "labels": "x"}}),
    ("EndpointSlice", raw(endpoints=["10.0.0.1"])),
    ("EndpointSlice", raw(endpoints=[{"conditions": "ready"}])),
    ("EndpointSlice", raw(ports=[8080])),
    ("Secret", raw(data=["x"])),
    ("Secret", raw(data={"a": 1})),
    ("Secret", raw(stringData="x")),
]


@pytest.mark.parametrize(("kind", "malformed"), MALFORMED)
def test_malformed_object_raises_what_reflectors_expect(kind: str, malformed: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        RESOURCES[kind].decode(malformed)


def test_malformed_config_map_is_refused() -> None:
    with pytest.raises(TypeError, match="data must be a mapping"):
        decoders.decode_config_map(raw(data="x"))


def test_error_names_the_field() -> None:
    with pytest.raises(TypeError, match=r"metadata\.name must be a string"):
        decoders.decode_pod({"metadata": {"name": 1}})


def test_reference_grant_holds_who_may_refer_to_what() -> None:
    spec = {
        "from": [{"group": "apisix.apache.org", "kind": "ApisixTls", "namespace": "shop"}],
        "to": [{"group": "", "kind": "Secret", "name": "cert"}, {"kind": "Service"}],
    }
    got = decoders.decode_reference_grant({"metadata": {"name": "g", "namespace": "certs"}, "spec": spec})
    assert got.meta.key == ("ReferenceGrant", "certs", "g")
    assert got.sources == (("apisix.apache.org", "ApisixTls", "shop"),)
    assert got.targets == (("", "Secret", "cert"), ("", "Service", ""))
