"""The generated pages: fresh, complete, and true to the models they are made from."""

import ast
from pathlib import Path

import pytest

from crds import KINDS
from crds.schema import spec_schema
from reference.__main__ import main
from reference.content.annotations import GROUPS, Annotation, ExampleError, page, read
from reference.content.examples import TOPICS, examples
from reference.content.objects import fields, rules, type_of
from reference.pages import files, stale, write
from translation import annotations as reader

ANNOTATIONS = [each for group in GROUPS.values() for each in group]
METHODS = {"text", "verbatim", "flag", "items", "number"}
HELPERS = {"_addresses", "_methods", "_headers", "_timeout"}


def names_in_code() -> set[str]:
    """Return the names of annotations that the code of `translation.annotations` reads, from its syntax."""
    found = set()
    for path in Path(reader.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                found |= {argument.value for argument in _named(node) if isinstance(argument, ast.Constant)}
            if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["_PARTS"]:
                found |= set(ast.literal_eval(node.value))
    return {name for name in found if isinstance(name, str)}


def _named(call: ast.Call) -> list[ast.expr]:
    match call.func:
        case ast.Attribute(value=ast.Name(id="annotations"), attr=method) if method in METHODS:
            return call.args[:1]
        case ast.Name(id=helper) if helper in HELPERS:
            return call.args[1:2]
    return []


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return files()


def test_committed_pages_match_the_program() -> None:
    assert stale() == ()


def test_every_annotation_that_is_read_is_explained_once() -> None:
    got = [each.name for each in ANNOTATIONS]
    assert sorted(got) == sorted(names_in_code())


def test_an_example_that_the_program_complains_about_is_an_error() -> None:
    with pytest.raises(ExampleError, match="upstream-scheme"):
        read(Annotation("upstream-scheme", "", "", "gopher"))


def test_every_annotation_has_a_row() -> None:
    got = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert got == [each.name for each in ANNOTATIONS]


def test_every_field_and_rule_of_a_kind_is_on_its_page(written: dict[str, str]) -> None:
    for kind in KINDS.values():
        text = written[f"docs/reference/objects/{kind.name.lower()}.md"]
        schema = spec_schema(kind)
        assert [field.path for field in fields(schema) if f"| `{field.path}` |" not in text] == []
        assert [message for _, message in rules(schema) if message not in text] == []


def test_types_are_reported_as_text() -> None:
    got = [
        type_of({"type": "array", "items": {"type": "string"}}),
        type_of({"type": "object", "additionalProperties": {"type": "string"}}),
        type_of({"x-kubernetes-int-or-string": True}),
        type_of({}),
    ]
    assert got == ["list of string", "map to string", "integer or string", "anything"]


def test_every_example_is_on_the_page_of_its_topic(written: dict[str, str]) -> None:
    assert [
        each.name for each in examples() if each.body not in written[f"docs/reference/examples/{each.topic}.md"]
    ] == []
    assert {each.topic for each in examples()} == set(TOPICS)


def test_check_names_a_stale_a_missing_and_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    pages = tmp_path / "docs" / "reference"
    (pages / "annotations.md").write_text("old")
    (pages / "objects" / "apisixtls.md").unlink()
    (pages / "examples" / "other.md").write_text("foreign")
    (pages / "cli.md").write_text("of somebody else")
    assert main(["--check"], tmp_path) == 1
    got = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    want = ["annotations.md", "examples/other.md", "objects/apisixtls.md"]
    assert got == [f"docs/reference/{name}" for name in want]
    assert main(["--write"], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    assert (pages / "cli.md").exists()
