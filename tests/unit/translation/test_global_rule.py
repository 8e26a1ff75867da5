"""ApisixGlobalRule → global rules."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.indexes import PLUGIN_INDEX
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, get, make, protected_by, secret, world
from tests.unit.translation.settling import bodies, problems, settle
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of
from translation.global_rule import translate_global_rule


def rule(
    name: str = "rule", *plugins: str | JsonObject, namespace: str = "default", day: int = 1, **spec: Any
) -> JsonObject:
    found = [{"name": item} if isinstance(item, str) else item for item in plugins]
    result = make("ApisixGlobalRule", name, namespace=namespace, spec={"plugins": found, **spec})
    result["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    return result


def translate(found: World, name: str = "rule", *, options: Options = OPTIONS, namespace: str = "default") -> Outcome:
    return translate_global_rule(get(found, "ApisixGlobalRule", name, namespace), found.view(), options)


def plugins(translation: Outcome) -> Any:
    (record,) = records_of(translation)
    return record.body["plugins"]


def test_a_record_has_only_its_id_and_plugins() -> None:
    got = translate(world(rule("rule", {"name": "cors", "config": {"max_age": 5}})))
    (record,) = records_of(got)
    assert record.body == {"id": record.key.id, "plugins": {"cors": {"max_age": 5}}}
    assert (record.name, record.clusters, got.problems) == ("default_rule", None, ())


def test_the_hold_names_the_rule_even_if_the_spec_is_broken() -> None:
    whole = translate(world(rule()))
    broken = translate(world(make("ApisixGlobalRule", "rule", spec={})))
    (record,) = records_of(whole)
    assert records_of(broken) == ()
    assert [problem.path for problem in broken.problems] == ["spec.plugins"]
    assert protected_by(broken) == protected_by(whole)
    assert [hold.names for hold in protected_by(whole)] == [frozenset({record.name})]


def test_a_missing_secret_keeps_the_rule_from_being_published() -> None:
    objects = [rule("rule", {"name": "echo", "secretRef": "absent"}, "cors")]
    got = translate(world(*objects))
    assert (records_of(got), [problem.code for problem in got.problems]) == ((), ["SecretNotFound"])
    got = translate(world(*objects, secret("absent", body="b")))
    assert plugins(got) == {"echo": {"body": "b"}, "cors": {}}


def test_the_older_of_two_rules_with_one_plugin_wins() -> None:
    found = world(rule("a", "echo", "cors", day=2), rule("b", "echo", day=1))
    older, younger = translate(found, "b"), translate(found, "a")
    assert (plugins(older), older.problems) == ({"echo": {}}, ())
    message = (
        "plugin echo is skipped: ApisixGlobalRule default/b already sets it, "
        "and APISIX allows a plugin in one global rule only; remove one"
    )
    assert plugins(younger) == {"cors": {}}
    assert younger.problems == (Problem("Conflicted", message, "spec.plugins[0]", "degraded"),)


def test_rules_of_one_age_are_ordered_by_name() -> None:
    found = world(rule("b", "echo"), rule("a", "echo"))
    assert plugins(translate(found, "a")) == {"echo": {}}
    assert plugins(translate(found, "b")) == {}


def test_of_a_conflicting_object_in_another_namespace_only_the_namespace_is_reported() -> None:
    found = world(rule("rule", "echo", day=2), rule("hidden", "echo", namespace="other"))
    (problem,) = translate(found).problems
    assert "an ApisixGlobalRule in namespace other already sets it" in problem.message
    assert "hidden" not in problem.message


@pytest.mark.parametrize("rival", [{"name": "echo", "enable": False}, "cors"])
def test_a_rule_that_does_not_enable_the_plugin_does_not_conflict(rival: str | JsonObject) -> None:
    found = world(rule("rule", "echo", day=2), rule("other", rival))
    assert (plugins(translate(found)), translate(found).problems) == ({"echo": {}}, ())


def test_a_rule_of_another_class_does_not_conflict() -> None:
    found = world(rule("rule", "echo", day=2), rule("other", "echo", ingressClassName="foreign"))
    assert plugins(translate(found, options=Options(ingress_class="mine"))) == {"echo": {}}


def test_a_duplicate_plugin_conflicts_at_its_last_position() -> None:
    found = world(rule("rule", "echo", "echo", day=2), rule("other", "echo"))
    got = [(problem.code, problem.path) for problem in translate(found).problems]
    assert got == [("PluginTwice", "spec.plugins[1]"), ("Conflicted", "spec.plugins[1]")]


def test_a_translation_is_notified_of_later_rivals() -> None:
    found = world(rule("rule", "echo"))
    view = found.view()
    translate_global_rule(get(found, "ApisixGlobalRule", "rule"), view, OPTIONS)
    assert IndexKey("ApisixGlobalRule", PLUGIN_INDEX, "echo") in view.reads


def test_the_younger_rule_gets_the_plugin_when_the_older_is_deleted() -> None:
    both = [rule("old", "echo"), rule("young", "echo", day=2)]
    got = settle(*both)
    assert problems(got) == {"ApisixGlobalRule default/old": [], "ApisixGlobalRule default/young": ["Conflicted"]}
    assert sorted(len(body["plugins"]) for body in bodies(got).values()) == [0, 1]
    got = settle(both[1])
    assert problems(got) == {"ApisixGlobalRule default/young": []}
    assert [body["plugins"] for body in bodies(got).values()] == [{"echo": {}}]
