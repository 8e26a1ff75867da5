"""Schema errors in the wording of the gateway's validator."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.devgateway.schemas.record_schemas import CREDENTIAL, ROUTE, UPSTREAM
from e2e.devgateway.schemas.validator import check


@pytest.mark.parametrize(
    ("schema", "value", "want"),
    [
        ({"type": "integer"}, 2.0, None),
        ({"type": "integer"}, True, "wrong type: expected integer, got boolean"),
        ({"type": "string"}, None, "wrong type: expected string, got userdata"),
        ({"type": "object"}, [], None),
        ({"type": "object"}, [1], "wrong type: expected object, got table"),
        ({"type": "array"}, {}, None),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "expected 0 to be greater than 0"),
        ({"type": "number", "maximum": 5}, 5.5, "expected 5.5 to be at most 5"),
        ({"type": "array", "maxItems": 1}, [1, 2], "expect array to have at most 1 items"),
        ({"type": "object", "minProperties": 1}, {}, "expect object to have at least 1 properties"),
        ({"enum": [1, 0]}, True, "matches none of the enum values"),
        ({"not": {"required": ["a"]}}, {"a": 1}, "value wasn't supposed to match schema"),
        ({"type": "string", "format": "ipv4"}, "::1", "expect valid ipv4 address but got: ::1"),
        (
            {"additionalProperties": {"type": "string"}},
            {"a": 1},
            "failed to validate additional property a: wrong type: expected string, got number",
        ),
        (
            {"dependencies": {"a": ["b"]}, "properties": {"a": {}}},
            {"a": 1},
            'property "b" is required when "a" is set',
        ),
        (
            ROUTE,
            {"uri": "/a", "script": "return 1234", "plugins": {}},
            "value wasn't supposed to match schema",
        ),
        (
            UPSTREAM,
            {"nodes": {}, "timeout": {"connect": 0, "send": 1, "read": 1}},
            'property "timeout" validation failed: property "connect" validation failed: '
            "expected 0 to be greater than 0",
        ),
        (
            CREDENTIAL,
            {"id": "a", "plugins": {"key-auth": {}, "basic-auth": {}}},
            'property "plugins" validation failed: expect object to have at most 1 properties',
        ),
    ],
)
def test_errors_have_the_wording_of_the_gateway(schema: dict[str, Any], value: Any, want: str | None) -> None:
    assert check(schema, value) == want
