"""How golden files are written and read: omitted parts are compared nevertheless."""

from pathlib import Path

import pytest

from apisix_ingress.model.json import JsonObject
from tests.golden.cases import STAMP, all_cases, read, write


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"id": "1", **STAMP}, "- id: '1'"),
        ({"id": "1", "desc": STAMP["desc"]}, "- id: '1'\n    labels: null"),
        ({"id": "1", **STAMP, "labels": {"team": "a"}}, "- id: '1'\n    labels:\n      team: a"),
    ],
)
def test_description_and_labels_are_written_where_they_differ(record: JsonObject, shown: str, tmp_path: Path) -> None:
    path, want = tmp_path / "want.yaml", {"problems": {}, "records": {"routes": [record]}}
    write(path, want)
    assert path.read_text() == f"problems: {{}}\nrecords:\n  routes:\n  {shown}\n"
    assert read(path) == want


def test_objects_of_the_base_are_in_the_namespace_of_the_case() -> None:
    case = next(case for case in all_cases() if case.name.endswith("/route-priorities"))
    found = {(item["kind"], item["metadata"].get("namespace")) for item in case.objects("")}
    namespaced = {("Service", "ar-priority"), ("Endpoints", "ar-priority"), ("EndpointSlice", "ar-priority")}
    assert found == {("Namespace", None), ("ApisixRoute", "ar-priority"), *namespaced}
