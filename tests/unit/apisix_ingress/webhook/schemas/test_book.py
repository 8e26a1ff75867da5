"""Plugin schemas: the same verdicts as the gateway, and messages without values."""

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.webhook.schemas.book import PluginSchema, compile_subsystem
from tests.unit.apisix_ingress.webhook.worlds import HTTP_PLUGINS, book


def compiled(schema: JsonObject) -> PluginSchema:
    found = compile_subsystem({"p": {"schema": schema}}).plugins["p"]
    assert found is not None
    return found


def of_field(schema: JsonObject, value: Any) -> list[str]:
    """Return the mistake in a value of a field `x`."""
    found = compiled({"type": "object", "properties": {"x": schema}}).mistakes({"x": value})
    assert all(path.startswith("x") for path, _ in found)
    return [sentence for _, sentence in found]


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        ({"maximum": 599}, 4711, "Must be less than or equal to 599"),
        ({"minimum": 200}, 1, "Must be greater than or equal to 200"),
        ({"exclusiveMaximum": 1}, 1, "Must be less than 1"),
        ({"exclusiveMinimum": 0}, 0, "Must be greater than 0"),
        ({"type": "integer"}, "s3cret", "Invalid type. Expected: integer, given: string"),
        ({"type": ["integer", "string"]}, None, "Invalid type. Expected: integer, string, given: null"),
        ({"type": "string"}, True, "Invalid type. Expected: string, given: boolean"),
        ({"type": "string"}, 1.5, "Invalid type. Expected: string, given: number"),
        ({"type": "string"}, [1], "Invalid type. Expected: string, given: array"),
        ({"minLength": 3}, "s3", "String length must be greater than or equal to 3"),
        ({"maxLength": 3}, "s3cret", "String length must be less than or equal to 3"),
        ({"pattern": "^[0-9]+$"}, "s3cret", "Does not match pattern '^[0-9]+$'"),
        ({"enum": ["a", 1]}, "s3cret", 'must be one of the following: "a", 1'),
        ({"const": "a"}, "s3cret", 'does not match: "a"'),
        ({"minItems": 1}, [], "Array must have at least 1 items"),
        ({"maxItems": 1}, [1, 2], "Array must have at most 1 items"),
        ({"uniqueItems": True}, ["s3cret", "s3cret"], "array items must be unique"),
        ({"minProperties": 1}, {}, "Must have at least 1 properties"),
        ({"maxProperties": 0}, {"a": "s3cret"}, "Must have at most 0 properties"),
        ({"required": ["y"]}, {"a": "s3cret"}, "y is required"),
        ({"additionalProperties": False}, {"a": "s3cret"}, "No properties are allowed"),
        ({"properties": {"b": {}}, "additionalProperties": False}, {"a": "s3cret"}, "Additional property a is not"),
        ({"dependencies": {"a": ["b"]}}, {"a": "s3cret"}, "b is required"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": "s3cret"}, "a property name is wrong: String length must be"),
        ({"multipleOf": 2}, 3, "Must be a multiple of 2"),
        ({"not": {"type": "string"}}, "s3cret", "Must not validate the schema (not)"),
        ({"contains": {"const": 1}}, ["s3cret"], "At least one of the items must match"),
        (
            {"anyOf": [{"type": "integer"}, {"maxLength": 1}]},
            "s3cret",
            "Must validate at least one schema (anyOf): Inv",
        ),
        (
            {"oneOf": [{"required": ["count"]}, {"required": ["rules"]}]},
            {"z": 1},
            "set one of count, rules",
        ),
        (
            {"oneOf": [{"minLength": 1}, {"minLength": 2}]},
            "s3cret",
            "Must validate one and only one schema (oneOf), but",
        ),
        (False, "s3cret", "False always fails validation"),
        (
            {"if": {"type": "string"}, "then": {"maxLength": 1}},
            "s3cret",
            "String length must be less than or equal to 1",
        ),
    ],
)
def test_each_broken_rule_has_a_sentence_without_the_value(schema: Any, value: Any, want: str) -> None:
    (got,) = of_field(schema, value)
    assert got.startswith(want)
    assert "s3cret" not in got


def test_mistakes_have_their_position() -> None:
    rules = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]}}
    got = compiled({"properties": {"rules": rules}}).mistakes({"rules": [{"m": 1}, {"n": "x"}]})
    want = {
        ("rules[1]", "m is required"),
        ("rules[1].n", "Invalid type. Expected: integer, given: string"),
    }
    assert set(got) == want


def test_defaults_are_filled_in_before_conditions_are_evaluated() -> None:
    subsystem = book().http
    assert subsystem.mistakes("limit-count", {"count": 1}) == ()
    assert subsystem.mistakes("limit-count", {"count": 1, "policy": "redis"}) == (("", "redis_password is required"),)


@pytest.mark.parametrize(("schema", "value"), [({"type": "array"}, {}), ({"type": "object"}, [])])
def test_empty_list_and_empty_mapping_are_one_to_a_gateway(schema: JsonObject, value: Any) -> None:
    assert of_field(schema, value) == []
    assert of_field({"anyOf": [{"type": "string"}, schema]}, value) == []
    assert of_field({"oneOf": [{"type": "string"}, schema]}, value) == []


def test_a_disabled_plugin_is_not_checked() -> None:
    assert book().http.mistakes("limit-count", {"_meta": {"disable": True}}) == ()
    assert book().http.mistakes("limit-count", {"_meta": {"disable": False}}) == (("", "count is required"),)


def test_plugin_of_a_consumer_has_its_own_schema() -> None:
    subsystem = book().http
    assert subsystem.mistakes("key-auth", {}) == ()
    assert subsystem.mistakes("key-auth", {}, in_consumer=True) == (("", "key is required"),)
    assert subsystem.mistakes("limit-count", {}, in_consumer=True) == (("", "count is required"),)


@pytest.mark.parametrize(
    ("pattern", "text", "is_wrong"),
    [
        (r"\A[a-z]+\z", "abc", False),
        (r"\A[a-z]+\z", "abc1", True),
        (r"^[a-zA-Z0-9-_.]+$", "a-b_c.d", False),
        (r"^(?!tag=)[ -~]*", "tag=x", True),
        (r"(?<!:)$", "a:", True),
        (r"^[ -!#-[\]-~]+$", 'a"b', True),
        ("(", "no pattern at all", False),
    ],
)
def test_patterns_of_a_gateway_are_read_as_it_reads_them(pattern: str, text: str, is_wrong: bool) -> None:
    assert bool(of_field({"type": "string", "pattern": pattern}, text)) == is_wrong


def test_a_pattern_above_the_step_limit_does_not_decide() -> None:
    assert of_field({"pattern": r"^((?=a)a|aa?)+$"}, "a" * 60 + "b") == []


def test_a_malformed_schema_checks_nothing() -> None:
    deep: JsonObject = {}
    for _ in range(5000):
        deep = {"properties": {"x": deep}}
    odd = {"a": {"schema": {"type": 7}}, "b": {"schema": None}, "c": 7, "d": {"schema": {"$ref": "http://x.test/s"}}}
    subsystem = compile_subsystem({**odd, "e": {"schema": deep}})
    assert set(subsystem.plugins) == {"a", "b", "d", "e"}
    assert [subsystem.mistakes(name, {"x": 1}) for name in subsystem.plugins] == [()] * 4


@pytest.mark.parametrize(
    ("name", "want"), [("limit-cont", "limit-count"), ("keyauth", "key-auth"), ("no-such-plugin", None), ("", None)]
)
def test_the_most_similar_name_is_suggested(name: str, want: str | None) -> None:
    assert compile_subsystem(HTTP_PLUGINS).nearest(name) == want
