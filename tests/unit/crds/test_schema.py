"""The generated CRDs: consistent with the models, and valid for API servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from crds import GROUP, KINDS, Kind, Spec, manifests
from crds.__main__ import FOLDER, main, stale, write
from crds.schema import SchemaError, definition, documents, spec_schema


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk a schema: every subschema with its path."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def root(crd: dict[str, Any]) -> dict[str, Any]:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(schema, dict)
    return schema


def every_node() -> list[tuple[str, dict[str, Any]]]:
    return [node for kind in KINDS.values() for node in nodes(root(definition(kind)), kind.name)]


def test_committed_files_match_the_models() -> None:
    assert stale(FOLDER) == ()


def test_packaged_manifests_are_the_generated_ones() -> None:
    assert manifests() == [definition(kind) for kind in KINDS.values()]


def test_names_and_scopes_are_those_of_the_reference() -> None:
    got = {crd["metadata"]["name"]: (crd["spec"]["names"]["shortNames"], crd["spec"]["scope"]) for crd in manifests()}
    want = {
        "apisixroutes.apisix.apache.org": (["ar"], "Namespaced"),
        "apisixupstreams.apisix.apache.org": (["au"], "Namespaced"),
        "apisixtlses.apisix.apache.org": (["atls"], "Namespaced"),
        "apisixconsumers.apisix.apache.org": (["ac"], "Namespaced"),
        "apisixclusterconfigs.apisix.apache.org": (["acc"], "Cluster"),
        "apisixpluginconfigs.apisix.apache.org": (["apc"], "Namespaced"),
        "apisixglobalrules.apisix.apache.org": (["agr"], "Namespaced"),
    }
    assert got | want == got


def test_every_node_has_one_type() -> None:
    for path, node in every_node():
        untyped = "x-kubernetes-int-or-string" in node or "x-kubernetes-preserve-unknown-fields" in node
        assert isinstance(node.get("type"), str) or untyped, path


def test_schemas_use_only_what_a_structural_schema_allows() -> None:
    forbidden = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "const", "uniqueItems", "exclusiveMinimum"}
    for path, node in every_node():
        assert not forbidden & node.keys(), path


def test_every_object_has_a_description() -> None:
    for path, node in every_node():
        if node.get("type") == "object" and not path.endswith(".metadata"):
            assert node.keys() & {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"}, path
        if node.get("type") == "array":
            assert "items" in node, path


def test_no_default_is_written_into_stored_objects() -> None:
    assert [path for path, node in every_node() if "default" in node] == []


def test_key_of_every_map_list_is_required() -> None:
    for path, node in every_node():
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"]["required"], path


def test_every_list_around_a_rule_is_bounded() -> None:
    # The API server counts the cost of a rule for the longest list that the schema allows.
    for path, node in every_node():
        if "items" in node and any("x-kubernetes-validations" in below for _, below in nodes(node["items"], path)):
            assert "maxItems" in node, path


def test_every_field_is_explained() -> None:
    unexplained = [
        path for path, node in every_node() if "description" not in node and not path.endswith(("[]", ".metadata"))
    ]
    assert unexplained == []


def test_spec_is_needed_where_one_of_its_fields_is() -> None:
    got = {crd["spec"]["names"]["kind"]: root(crd).get("required") for crd in manifests()}
    want = {
        "ApisixRoute": None,
        "ApisixUpstream": None,
        "ApisixTls": ["spec"],
        "ApisixConsumer": None,
        "ApisixClusterConfig": None,
        "ApisixPluginConfig": ["spec"],
        "ApisixGlobalRule": ["spec"],
    }
    assert got | want == got


def test_conflicting_types_of_a_field_are_an_error() -> None:
    class Odd(Spec):
        field: int | bool

    with pytest.raises(SchemaError, match=r"Odd\.field: .* a field with several types"):
        spec_schema(Kind("Odd", "odds", "o", lambda: Odd, ""))


def test_unknown_keyword_is_an_error() -> None:
    class Odd(Spec):
        field: Literal["x"]

    with pytest.raises(SchemaError, match=r"Odd\.field: .* 'const'"):
        spec_schema(Kind("Odd", "odds", "o", lambda: Odd, ""))


def test_command_prints_every_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == manifests()


def test_check_fails_on_a_stale_a_missing_and_a_foreign_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--write"], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / f"{GROUP}_apisixroutes.yaml").write_text("kind: Old\n", encoding="utf-8")
    (tmp_path / f"{GROUP}_apisixtlses.yaml").unlink()
    (tmp_path / "other.yaml").write_text("", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert stale(tmp_path) == (f"{GROUP}_apisixroutes.yaml", f"{GROUP}_apisixtlses.yaml", "other.yaml")
    assert "is stale: run python -m crds --write" in capsys.readouterr().err


def test_write_brings_a_folder_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("", encoding="utf-8")
    write(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == documents()
