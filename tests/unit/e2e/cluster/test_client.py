"""The parts of the API client that need no server: manifests, paths and waiting."""

from pathlib import Path

import pytest

from e2e.cluster.client import Resource, WaitError, load_manifests, wait_until

A = {"kind": "A"}
B = {"kind": "B"}


def test_yaml_text_may_hold_several_documents_and_empty_ones() -> None:
    assert load_manifests("kind: A\n---\n---\nkind: B\n") == [A, B]


def test_a_list_object_gives_its_items() -> None:
    assert load_manifests({"kind": "List", "items": [A, B]}) == [A, B]


def test_a_folder_gives_its_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "2.yml").write_text("kind: B\n")
    (tmp_path / "1.yaml").write_text("kind: A\n")
    (tmp_path / "notes.md").write_text("not a manifest")
    assert load_manifests(tmp_path) == [A, B]


@pytest.mark.parametrize(
    ("resource", "want"),
    [
        (Resource("v1", "Pod", "pods", True), "/api/v1/namespaces/ns/pods/x"),
        (Resource("v1", "Node", "nodes", False), "/api/v1/nodes/x"),
        (Resource("apps/v1", "Deployment", "deployments", True), "/apis/apps/v1/namespaces/ns/deployments/x"),
    ],
)
def test_a_path_follows_from_group_scope_and_name(resource: Resource, want: str) -> None:
    assert resource.path("ns", "x") == want


def test_an_empty_namespace_means_all_of_them() -> None:
    assert Resource("v1", "Pod", "pods", True).path("") == "/api/v1/pods"


def test_waiting_returns_the_value_that_was_waited_for() -> None:
    values = iter([1, 2, 3])
    assert wait_until(lambda: next(values), lambda got: got == 3, "three") == 3


def test_a_failed_wait_shows_the_last_state_without_managed_fields() -> None:
    value = {"metadata": {"name": "x", "managedFields": ["noise"]}}
    with pytest.raises(WaitError) as failed:
        wait_until(lambda: value, lambda _: False, "a change", timeout=0)
    got = str(failed.value)
    assert "waited 0 s for a change" in got
    assert '"name": "x"' in got
    assert "noise" not in got
