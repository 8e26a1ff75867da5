"""The table of texts in plugins compared with the schemas of a gateway.

`tests/unit/translation/plugins/policy/fields-<version>.json` is derived from them. With `APISIX_CONTROL_URL`, the
schemas of a running gateway are read from its control API as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import httpx
import pytest

from tests.unit.translation.plugins.policy.fields import FOLDER, FREE, inventory
from translation.plugins.notation import ANY, ITEM, expanded, steps_of
from translation.plugins.policy import PLUGINS
from translation.plugins.policy.model import Kind
from translation.safety.fields import FIELDS, Use
from translation.safety.plugins import CHECKS

OURS = "ingress_nginx."
"""Fields that functions of the controller read."""

LATER = {"graphql-limit-count": {"cost_strategy", "introspection_endpoint", "introspection_headers.*"}}
"""Fields that a later version has."""

Known = Mapping[str, Mapping[str, str]]


def recorded() -> Known:
    read = [json.loads((FOLDER / f"fields{part}-3.18.json").read_text()) for part in ("", "-source")]
    return {name: read[0].get(name, {}) | read[1].get(name, {}) for name in read[0] | read[1]}


KNOWN = recorded()


def uses_of(name: str) -> dict[str, Use]:
    return {path: use for use, paths in FIELDS.get(name, {}).items() for path in expanded(paths)}


def covers(rule: tuple[str, ...], field: tuple[str, ...]) -> bool:
    """Return whether a rule is about a field: for the field itself, or for the list whose items it is."""
    named = [step for step in field if step != ITEM]
    return [step for step in rule if step != ITEM] == named or (
        len(rule) < len(named) and rule[-1] == ANY and [*rule] == named[: len(rule)]
    )


def unlisted(known: Known) -> list[str]:
    """Return the fields that may hold text and are not in the table."""
    found = []
    for name, fields in known.items():
        rules = [steps_of(path) for path in uses_of(name)]
        texts = [path for path, kind in fields.items() if kind in ("string", FREE)]
        found += [f"{name}: {path}" for path in texts if not any(covers(rule, steps_of(path)) for rule in rules)]
    return found + [name for name in known if name not in FIELDS]


def test_every_text_of_every_plugin_is_in_the_table() -> None:
    assert unlisted(KNOWN) == []


def test_a_new_field_or_plugin_is_noticed() -> None:
    schema = {"properties": {"uri": {"type": "string"}, "brand_new": {"type": "string"}}}
    found = inventory({"plugins": {"forward-auth": {"schema": schema}, "newer": {"schema": {}}}, "stream_plugins": {}})
    assert unlisted(found) == ["forward-auth: brand_new", "newer"]


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_table_names_no_field_that_the_plugin_lacks(name: str) -> None:
    fields = [steps_of(path) for path in KNOWN[name]]
    paths = [path for path in uses_of(name) if not path.startswith(OURS) and path not in LATER.get(name, ())]
    assert [path for path in paths if not any(covers(steps_of(path), field) for field in fields)] == []


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_no_field_has_two_uses(name: str) -> None:
    paths = [path for paths in FIELDS[name].values() for path in expanded(paths)]
    assert sorted(paths) == sorted(set(paths))


def test_destinations_of_the_review_are_destinations_here() -> None:
    kinds = {Kind.URL: Use.URL, Kind.HOST: Use.HOST, Kind.REWRITES: Use.REWRITE, Kind.CODE: Use.CODE}
    reviewed = {
        (name, rule.path): kinds[rule.kind]
        for name, plugin in PLUGINS.items()
        for rule in plugin.rules
        if rule.kind in kinds
    }
    assert {(name, path): uses_of(name).get(path) for name, path in reviewed} == reviewed


def test_every_plugin_whose_paths_or_groups_a_client_fills_has_a_check() -> None:
    filled = {Use.REWRITE, Use.CAPTURES}
    assert {name for name, fields in FIELDS.items() if filled & fields.keys()} <= CHECKS.keys()


@pytest.mark.skipif("APISIX_CONTROL_URL" not in os.environ, reason="needs the control API of a real gateway")
def test_a_real_gateway_has_no_other_texts() -> None:
    answer = httpx.get(os.environ["APISIX_CONTROL_URL"] + "/v1/schema").raise_for_status()
    assert unlisted(inventory(answer.json())) == []
