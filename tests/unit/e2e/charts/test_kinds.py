"""The kinds in the chart and the kustomize bases, compared with the table of kinds."""

import pytest

from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.webhook.checks import gateway_objects
from e2e.charts import kinds
from e2e.cluster.client import Manifest, load_manifests


def base() -> list[Manifest]:
    return load_manifests((kinds.KUSTOMIZE / "base" / "controller.yaml").read_text())


def test_nothing_is_out_of_date() -> None:
    assert list(kinds.problems()) == []


def test_a_kind_that_the_roles_leave_out_is_reported() -> None:
    manifests = base()
    for role in (each for each in manifests if each["kind"] == "ClusterRole"):
        for rule in role["rules"]:
            rule["resources"] = [each for each in rule["resources"] if each != "apisixroutes"]
    want = [f"does not permit: {verb} apisixroutes.apisix.apache.org" for verb in ("get", "list", "watch")]
    assert list(kinds.role_problems(manifests)) == want


def test_a_permission_without_need_is_reported() -> None:
    manifests = base()
    role = next(each for each in manifests if each["kind"] == "ClusterRole")
    role["rules"].append({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]})
    assert list(kinds.role_problems(manifests)) == ["permits without need: list nodes"]


def test_a_list_without_a_kind_of_the_table_is_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "RESOURCES", {kind: row for kind, row in RESOURCES.items() if kind != "UDPRoute"})
    monkeypatch.setattr(kinds, "CHECKED", gateway_objects.CHECKED - {"UDPRoute"})
    assert "deploy/charts/apisix-ingress/templates/_kinds.tpl is out of date" in kinds.problems()
