"""The generated CRDs on a real API server: it accepts them and valid objects, and rejects invalid ones."""

from collections.abc import Iterator
from typing import Any

import pytest

from crds import GROUP, KINDS, VERSION, manifests
from e2e.cluster.client import KubeApiError, KubeClient
from tests.unit.crds.cases import BAD, GOOD, LATE, REFUSED, Case, recorded
from tests.unit.crds.specs import route

pytest_plugins = ["e2e.cluster.fixtures"]


@pytest.fixture(scope="module")
def crd_api(api: KubeClient) -> KubeClient:
    api.apply(manifests())
    return api


@pytest.fixture
def quiet_namespace(crd_api: KubeClient) -> Iterator[str]:
    """A namespace that no running controller serves, so that no other process writes a status."""
    with crd_api.namespace(labels={"e2e-controller": "own"}) as name:
        yield name


def manifest(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def dry_run(api: KubeClient, case: Case) -> dict[str, Any]:
    """Create an object without storing it; an unknown field is an error."""
    path = api.resource(f"{GROUP}/{VERSION}/{case.kind}").path("default" if KINDS[case.kind].namespaced else "")
    body = manifest(case.kind, case.spec)
    return api.request("POST", path, body=body, params={"dryRun": "All", "fieldValidation": "Strict"})


def is_refused(case: Case) -> bool:
    return REFUSED.get(case.title) == case.kind


def test_every_crd_is_established_and_structural(crd_api: KubeClient) -> None:
    for kind in KINDS.values():
        crd = crd_api.get("CustomResourceDefinition", f"{kind.plural}.{GROUP}")
        got = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
        assert got == {"NamesAccepted": "True", "Established": "True"}, kind.name


def test_every_valid_object_is_accepted_unchanged(crd_api: KubeClient) -> None:
    for case in [*GOOD, *LATE, *(case for case in recorded() if not is_refused(case))]:
        got = dry_run(crd_api, case)
        assert got["spec"] == case.spec, case.title


def test_every_invalid_object_is_rejected_with_its_field(crd_api: KubeClient) -> None:
    for case in BAD:
        with pytest.raises(KubeApiError) as caught:
            dry_run(crd_api, case)
        assert caught.value.status == 422, case.title
        assert case.path in str(caught.value), case.title


def test_recorded_object_that_no_release_could_serve_is_rejected(crd_api: KubeClient) -> None:
    refused = [case for case in recorded() if is_refused(case)]
    assert {case.title for case in refused} == REFUSED.keys()
    for case in refused:
        with pytest.raises(KubeApiError, match=r"Duplicate value|Unsupported value"):
            dry_run(crd_api, case)


def test_null_fields_are_dropped_and_no_default_is_stored(crd_api: KubeClient, quiet_namespace: str) -> None:
    spec = route(plugins=None, timeout={"read": None}) | {"stream": None}
    got = crd_api.create(manifest("ApisixRoute", spec), namespace=quiet_namespace)
    assert got["spec"] == route(timeout={})


def test_status_keeps_every_field_and_shows_in_the_columns(crd_api: KubeClient, quiet_namespace: str) -> None:
    condition = {
        "type": "ResourcesAvailable",
        "status": "False",
        "reason": "ResourceSyncAborted",
        "message": "no such Service",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    for kind in KINDS.values():
        place = quiet_namespace if kind.namespaced else ""
        spec = next(case.spec for case in GOOD if case.kind == kind.name)
        crd_api.create(manifest(kind.name, spec), namespace=place)
        body = {"status": {"conditions": [condition]}}
        got = crd_api.patch(kind.name, "a", body, namespace=place, subresource="status")
        assert got["status"] == body["status"], kind.name
        assert state_columns(crd_api, kind.name, place) == ["False", "ResourceSyncAborted", "no such Service"]
        crd_api.delete(kind.name, "a", namespace=place)


def state_columns(api: KubeClient, kind: str, namespace: str) -> list[str]:
    """Return the state columns of `kubectl get -o wide` for the object `a`."""
    path = api.resource(f"{GROUP}/{VERSION}/{kind}").path(namespace, "a")
    table = api.request("GET", path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(names, table["rows"][0]["cells"], strict=True))
    return [cells["Ready"], cells["Reason"], cells["Message"]]
