"""Positions in manifests."""

import pytest

from apisix_ingress.kube.manifests.locations import START, Locations
from apisix_ingress.model.formats.safe_yaml import Position
from apisix_ingress.model.keys import ObjectKey

TEXT = """\
---
---
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata:
  name: web
  annotations:
    k8s.apisix.apache.org/enable-cors: "true"
spec:
  http:
    - name: one
    - {name: two, match: {hosts: [a.example.org, b.example.org]}}
---
apiVersion: v1
kind: List
items:
  - kind: Namespace
    metadata: {name: shop}
  - kind: Service
    metadata: {name: web, namespace: shop}
"""
ROUTE = ObjectKey("ApisixRoute", "default", "web")


@pytest.mark.parametrize(
    ("at", "path", "want"),
    [
        (ROUTE, "", (3, 1)),
        (ROUTE, "spec", (9, 1)),
        (ROUTE, "spec.http[0].name", (11, 7)),
        (ROUTE, "spec.http[1]", (12, 7)),
        (ROUTE, "spec.http[1].match.hosts[1]", (12, 50)),
        (ROUTE, "spec.http[1].match.paths", (12, 19)),
        (ROUTE, "spec.http[7].match", (10, 3)),
        (ROUTE, "metadata.annotations[k8s.apisix.apache.org/enable-cors]", (8, 5)),
        (ROUTE, "metadata.annotations[k8s.apisix.apache.org/other]", (7, 3)),
        (ObjectKey("Namespace", "", "shop"), "metadata.name", (18, 16)),
        (ObjectKey("Service", "shop", "web"), "", (19, 5)),
        (ObjectKey("Service", "default", "web"), "", START),
        ("document 2", "", (3, 1)),
        ("document 3, item 2", "", (19, 5)),
        ("document 9", "", START),
    ],
)
def test_place_is_that_of_the_field_or_of_its_nearest_parent(at: str | ObjectKey, path: str, want: Position) -> None:
    assert Locations(TEXT.encode()).of(at, path) == want


def test_the_first_of_two_equal_objects_is_used() -> None:
    twice = "kind: Service\nmetadata: {name: web}\n---\nkind: Service\nmetadata: {name: web}\n"
    places = Locations(twice.encode())
    key = ObjectKey("Service", "default", "web")
    assert (key in places, places.of(key)) == (True, (1, 1))
    assert ROUTE not in places


@pytest.mark.parametrize("text", ["[", "- 5\n---\n5\n", "kind: [a]\nmetadata: 5\n", "? [a]\n: b\n", "\xff"])
def test_what_is_not_an_object_has_no_place(text: str) -> None:
    assert Locations(text.encode("latin-1")).of(ROUTE, "spec") == START


def test_json_has_positions_too() -> None:
    text = '{"kind": "Service",\n "metadata": {"name": "web"},\n "spec": {"ports": [{"port": 80}]}}'
    assert Locations(text.encode()).of(ObjectKey("Service", "default", "web"), "spec.ports[0].port") == (3, 22)
