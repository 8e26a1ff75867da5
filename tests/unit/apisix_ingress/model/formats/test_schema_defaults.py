"""Defaults of a JSON schema: where they are filled in, and where not."""

from typing import Any

import pytest

from apisix_ingress.model.formats.schema_defaults import with_defaults
from apisix_ingress.model.json import JsonObject


def test_defaults_are_filled_in_at_every_level_and_the_input_stays() -> None:
    inner = {"properties": {"a": {"default": {"b": []}}, "c": {"default": 1}}}
    schema = {"properties": {"list": {"items": inner}, "map": inner, "none": True}}
    config = {"list": [{"c": 2}, 7], "map": {}}
    got = with_defaults(schema, config)
    assert got == {"list": [{"a": {"b": []}, "c": 2}, 7], "map": {"a": {"b": []}, "c": 1}}
    got["map"]["a"]["b"].append(1)
    assert (config, inner["properties"]["a"]) == ({"list": [{"c": 2}, 7], "map": {}}, {"default": {"b": []}})


def test_defaults_of_a_bottomless_configuration_end() -> None:
    schema: JsonObject = {"properties": {"x": {}}}
    schema["properties"]["x"] = schema
    config: JsonObject = {}
    for _ in range(5000):
        config = {"x": config}
    assert with_defaults(schema, config)["x"]


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        ({"properties": {"a": {"default": 1}}, "required": ["a"]}, {}, {"a": 1}),
        ({"properties": {"a": {"default": None}, "b": {"default": False}}}, {}, {"b": False}),
        ({"properties": {"a": {"default": 1}}}, {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": {"default": 1}}}, [], {"a": 1}),
        ({"type": "array", "properties": {"a": {"default": 1}}}, {"b": 1}, {"b": 1}),
        ({"additionalProperties": {"properties": {"a": {"default": 1}}}}, {"x": {}}, {"x": {"a": 1}}),
        ({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}, {}, {"a": {}}),
        ({"items": [{"properties": {"a": {"default": 1}}}]}, [{}], [{}]),
    ],
)
def test_defaults_are_filled_in_as_a_gateway_does(schema: JsonObject, value: Any, want: Any) -> None:
    assert with_defaults(schema, value) == want


A_DEFAULT = {"properties": {"a": {"default": 1}}}


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        ({"allOf": [A_DEFAULT, {"properties": {"b": {"default": 2}}}]}, {}, {"a": 1, "b": 2}),
        ({"allOf": [False, A_DEFAULT]}, {}, {}),
        ({"anyOf": [{"type": "array"}, A_DEFAULT, {"properties": {"b": {"default": 2}}}]}, {"x": 1}, {"x": 1, "a": 1}),
        ({"oneOf": [{**A_DEFAULT, "required": ["x"]}, {"required": ["y"]}]}, {"y": 1}, {"y": 1}),
        ({"oneOf": [{**A_DEFAULT, "additionalProperties": False}, {"type": "null"}]}, {"y": 1}, {"y": 1}),
        ({"anyOf": [{"items": {"type": "string"}}, {"items": A_DEFAULT}]}, [{}], [{"a": 1}]),
        ({"anyOf": [{"const": True}, {"enum": [1]}, {"type": ["integer", "string"]}]}, 1.0, 1.0),
        ({"anyOf": [{"type": "number"}, A_DEFAULT]}, True, True),
        ({"dependencies": {"b": A_DEFAULT, "c": ["d"]}}, {"b": 1, "c": 1}, {"b": 1, "c": 1, "a": 1}),
        ({"dependencies": {"b": A_DEFAULT}}, {"c": 1}, {"c": 1}),
    ],
)
def test_only_the_branch_that_is_meant_fills_in(schema: JsonObject, value: Any, want: Any) -> None:
    assert with_defaults(schema, value) == want


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({}, {"policy": "local"}),
        ({"policy": "redis"}, {"policy": "redis", "port": 6379}),
        ({"policy": "x"}, {"policy": "x"}),
    ],
)
def test_condition_sees_the_defaults(config: JsonObject, want: JsonObject) -> None:
    schema: JsonObject = {
        "properties": {"policy": {"default": "local"}},
        "if": {"properties": {"policy": {"enum": ["redis"]}}},
        "then": {"properties": {"port": {"default": 6379}}},
        "else": {"if": {"properties": {"policy": {"const": "local"}}}, "then": {}},
    }
    assert with_defaults(schema, config) == want


def test_without_a_schema_no_default_is_filled_in() -> None:
    schemas: tuple[object, ...] = (None, True, [], "text")
    assert [with_defaults(schema, {"a": {}}) for schema in schemas] == [{"a": {}}] * 4
