"""The table compared with the fields of plugins: it is complete and has no unknown fields.

`fields-<version>.json` is generated from the schemas of a gateway; `fields-source-<version>.json` holds plugins that
the gateway was built without, and fields that its schemas leave open, from their source.
"""

from __future__ import annotations

import json
from math import isinf

import pytest

from tests.unit.translation.plugins.policy.fields import FOLDER, FREE, fields_of, inventory
from translation.plugins.code import CODE_FIELDS, CODE_PLUGINS, is_code
from translation.plugins.policy import COMMON, PLUGINS
from translation.plugins.policy.model import Kind, Node, Rule, allow, tree
from translation.plugins.policy.numbers import COMPARED, MOST, most

VERSIONS = ("3.18",)
ALLOWED = sorted(name for name, plugin in PLUGINS.items() if plugin.allowed)
OPEN = (Kind.FREE, Kind.UNCOMPRESSED, Kind.CODE, Kind.PLUGINS, Kind.REFUSED)
"""Kinds that say something about whatever is below a field."""


def fields(version: str) -> dict[str, dict[str, str]]:
    read = (json.loads((FOLDER / f"fields{part}-{version}.json").read_text()) for part in ("", "-source"))
    published, source = read
    return {name: published.get(name, {}) | source.get(name, {}) for name in published | source}


KNOWN = {version: fields(version) for version in VERSIONS}

for_each = pytest.mark.parametrize(("version", "name"), [(version, name) for version in VERSIONS for name in ALLOWED])


def rule_of(root: Node, path: str) -> Rule | None:
    """Return the rule for a field: its own, or one for everything below a field above it."""
    node: Node | None = root
    for step in path.replace("[]", ".[]").split("."):
        assert node is not None
        if node.kind in OPEN:
            break
        if step == "*" and node.kind is Kind.HOSTS:
            break
        # Lists of texts and numbers go by the rule of the list.
        node = (node.items or node) if step == "[]" else node.fields.get(step) or node.any
        if node is None:
            return None
    return node.rule if node else None


@for_each
def test_every_field_of_an_allowed_plugin_is_reviewed(version: str, name: str) -> None:
    root = tree(PLUGINS[name].rules)
    found = {path: (kind, rule_of(root, path)) for path, kind in KNOWN[version][name].items()}
    assert [path for path, (_, rule) in found.items() if rule is None] == []
    loose = (path for path, (kind, rule) in found.items() if kind == FREE and rule and rule.kind not in OPEN)
    assert list(loose) == []


@for_each
def test_every_number_of_an_allowed_plugin_has_a_maximum_or_costs_nothing(version: str, name: str) -> None:
    root = tree(PLUGINS[name].rules)
    numbers = [path for path, kind in KNOWN[version][name].items() if kind in ("integer", "number")]
    plain = [path.removesuffix("[]") for path in numbers if (rule := rule_of(root, path)) and rule.kind is Kind.PLAIN]
    assert [path for path in plain if isinf(most(name, path)) and path.rpartition(".")[2] not in COMPARED] == []


def test_every_maximum_belongs_to_a_field() -> None:
    numeric = {
        (name, path.removesuffix("[]")) for version in VERSIONS for name in ALLOWED for path in KNOWN[version][name]
    }
    used = {entry for entry in MOST for name, path in numeric if f".{name}.{path}".endswith(f".{entry}")}
    assert MOST.keys() - used == set()
    assert {path.rpartition(".")[2] for _, path in numeric} >= COMPARED


@for_each
def test_the_table_names_no_field_that_the_plugin_lacks(version: str, name: str) -> None:
    plugin = PLUGINS[name]
    known = {path.removesuffix("[]") for path in KNOWN[version][name]}
    above = {path[:end] for path in known for end in range(len(path)) if path[end] in ".["} | {
        f"{path[: end + 2]}" for path in known for end in range(len(path)) if path.startswith("[]", end)
    }
    named = {rule.path for rule in plugin.rules}
    assert named - plugin.older - known - above == set()
    assert plugin.older & known == set()


def test_every_published_plugin_has_a_verdict() -> None:
    for version in VERSIONS:
        assert sorted(name for name in KNOWN[version].keys() - PLUGINS.keys() if not is_code(name)) == []


def test_no_plugin_is_both_code_and_reviewed() -> None:
    assert PLUGINS.keys() & CODE_PLUGINS.keys() == set()


def test_fields_that_hold_code_are_the_same_in_both_lists() -> None:
    of_table = {
        (name, rule.path) for name, plugin in PLUGINS.items() for rule in plugin.rules if rule.kind is Kind.CODE
    }
    assert of_table == {(name, path) for name, path in CODE_FIELDS if PLUGINS[name].allowed}
    assert [rule.path for rule in COMMON if rule.kind is Kind.CODE] == ["_meta.pre_function"]


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_reasons_read_as_sentences(name: str) -> None:
    """One of an allowed plugin stands alone; one of a refusal is the rest of `it …`."""
    plugin = PLUGINS[name]
    if plugin.allowed:
        assert plugin.reason[:1].isupper()
        assert plugin.reason.endswith(".")
    else:
        assert plugin.reason[:1].islower()
    assert all(rule.reason[:1].islower() for rule in plugin.rules if rule.kind is Kind.REFUSED)


def test_a_new_field_of_a_gateway_is_detected() -> None:
    found = inventory(
        {"plugins": {"cors": {"schema": {"properties": {"brand_new": {"type": "string"}}}}}, "stream_plugins": {}}
    )
    root = tree(PLUGINS["cors"].rules)
    assert [path for path in found["cors"] if rule_of(root, path) is None] == ["brand_new"]


def test_fields_are_read_from_every_branch_of_a_schema() -> None:
    schema = {
        "properties": {
            "_meta": {"type": "object"},
            "a": {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
            "b": {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "string"}, "fix": {"type": "string"}}},
            "c": {"type": "array", "items": [{"properties": {"d": {"enum": ["x"]}}}]},
            "e": {"type": "object", "additionalProperties": {"type": "string"}},
            "f": {"type": "object"},
            "g": {"type": "array"},
        },
        "if": {"properties": {"h": {"enum": ["x"]}}},
        "then": {"properties": {"i": {"type": "string"}}},
        "dependencies": {"a": {"properties": {"j": {"type": "string"}}}},
    }
    assert dict(fields_of(schema)) == {
        "a": "integer",
        "a[]": "string",
        "b.*": "string",
        "b.fix": "string",
        "c[].d": "string",
        "e.*": "string",
        "f": FREE,
        "g": FREE,
        "h": "string",
        "i": "string",
        "j": "string",
    }


def test_braces_stand_for_several_fields() -> None:
    found = allow("X.", plain="a.{b,c} d", free="e[].f", refused={"{g,h}.i": "no"}, older="j").rules
    assert [(rule.path, rule.kind) for rule in found] == [
        ("a.b", Kind.PLAIN),
        ("a.c", Kind.PLAIN),
        ("d", Kind.PLAIN),
        ("e[].f", Kind.FREE),
        ("j", Kind.PLAIN),
        ("g.i", Kind.REFUSED),
        ("h.i", Kind.REFUSED),
    ]
