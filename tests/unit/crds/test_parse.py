"""Specs are parsed or rejected, with the field that is wrong; unknown fields are found."""

from typing import Any, cast

import pytest

from crds import KINDS, SpecError, parse_spec, unknown_fields
from crds.parse import MOST_MISTAKES
from crds.v2.plugin_config import ApisixPluginConfigSpec
from tests.unit.crds.cases import BAD, GOOD, LATE, UNSERVABLE, Case, recorded
from tests.unit.crds.specs import (
    SECRET,
    active_check,
    http_rule,
    route,
)


def problems(kind: str, spec: dict[str, Any] | None) -> tuple[tuple[str, str], ...]:
    with pytest.raises(SpecError) as caught:
        parse_spec(kind, spec)
    return caught.value.problems


def test_missing_field_is_named_with_what_belongs_there() -> None:
    got = problems("ApisixRoute", route(match={"hosts": ["a.example.com"]}))
    want = "required field is missing: paths; exact, or a prefix with * at the end"
    assert got == (("spec.http[0].match.paths", want),)


def test_description_that_only_repeats_the_name_is_skipped() -> None:
    spec = {"authParameter": {"basicAuth": {"value": {"username": "jack"}}}}
    want = "required field is missing"
    assert problems("ApisixConsumer", spec) == (("spec.authParameter.basicAuth.value.password", want),)


def test_every_mistake_of_an_object_is_reported() -> None:
    rule = http_rule(priority="10", websocket="yes", backends=[{"serviceName": 7}])
    assert problems("ApisixRoute", {"http": [http_rule(name="ok"), rule]}) == (
        ("spec.http[1].priority", "must be an integer without quotes"),
        ("spec.http[1].websocket", "must be true or false without quotes"),
        ("spec.http[1].backends[0].serviceName", "must be a string; put a number or a yes/no in quotes"),
        ("spec.http[1].backends[0].servicePort", "required field is missing: number or name of a port of the Service"),
    )


@pytest.mark.parametrize("case", [*BAD, *LATE], ids=lambda case: case.title)
def test_one_mistake_gives_its_path_and_the_remedy(case: Case) -> None:
    got = problems(case.kind, case.spec)
    assert [path for path, _ in got] == [case.path]
    assert case.words in got[0][1]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.title)
def test_what_a_release_could_serve_is_accepted(case: Case) -> None:
    spec = parse_spec(case.kind, case.spec)
    assert isinstance(spec, KINDS[case.kind].spec)
    assert unknown_fields(case.kind, case.spec) == ()


@pytest.mark.parametrize("case", recorded(), ids=lambda case: f"{case.title}-{case.kind}")
def test_recorded_object_is_accepted_unless_no_release_could_serve_it(case: Case) -> None:
    assert unknown_fields(case.kind, case.spec) == ()
    if UNSERVABLE.get(case.title) == case.kind:
        assert problems(case.kind, case.spec)
    else:
        assert isinstance(parse_spec(case.kind, case.spec), KINDS[case.kind].spec)


def test_no_message_echoes_a_value() -> None:
    secret = "canary-7f3a"
    spec = {
        "authParameter": {
            "keyAuth": {"value": {"key": {secret: secret}}},
            "jwtAuth": {"value": {"key": "k", "exp": secret, "algorithm": secret}},
            "hmacAuth": {"secretRef": secret, "value": secret},
        },
        "plugins": [{"name": "x", "config": secret}],
    }
    with pytest.raises(SpecError) as caught:
        parse_spec("ApisixConsumer", spec)
    assert len(caught.value.problems) == 5
    assert secret not in str(caught.value)
    assert caught.value.__context__ is None or secret not in str(caught.value.__context__)


def test_a_list_whose_items_are_all_invalid_is_not_reported_as_empty() -> None:
    found = problems("ApisixTls", {"hosts": ["a b"], "secret": SECRET})
    assert [path for path, _ in found] == ["spec.hosts[0]"]


def test_missing_spec_is_an_empty_one() -> None:
    assert [path for path, _ in problems("ApisixTls", None)] == ["spec.hosts", "spec.secret"]


def test_spec_that_is_not_a_mapping_is_one_problem() -> None:
    assert problems("ApisixRoute", cast("Any", ["http"])) == (("spec", "must be a mapping (lines of key: value)"),)


def test_null_counts_as_absent() -> None:
    spec = {
        "ingressClassName": None,
        "http": [http_rule(plugins=None, priority=None, timeout={"read": None})],
        "stream": None,
    }
    assert parse_spec("ApisixRoute", spec) == parse_spec("ApisixRoute", route(timeout={}))


def test_null_inside_the_config_of_a_plugin_stays() -> None:
    got = parse_spec(ApisixPluginConfigSpec, {"plugins": [{"name": "p", "secretRef": None, "config": {"a": None}}]})
    assert got.plugins[0].config == {"a": None}


def test_null_does_not_hide_another_mistake() -> None:
    assert [path for path, _ in problems("ApisixTls", {"hosts": None, "secret": SECRET, "client": None})] == [
        "spec.hosts"
    ]


def test_null_in_a_list_is_a_mistake() -> None:
    assert problems("ApisixRoute", route(match={"paths": [None, "/"]})) == (
        ("spec.http[0].match.paths[0]", "must be a string; put a number or a yes/no in quotes"),
    )


def test_mistake_below_a_free_key_has_its_path() -> None:
    subset = {"name": "v1", "labels": {"version": 1}}
    assert problems("ApisixUpstream", {"subsets": [subset]}) == (
        ("spec.subsets[0].labels.version", "must be a string; put a number or a yes/no in quotes"),
    )
    assert problems("ApisixUpstream", {"subsets": [{**subset, "labels": {"version": {"a": None}}}]}) == (
        ("spec.subsets[0].labels.version", "must be a string; put a number or a yes/no in quotes"),
    )


def test_parsing_does_not_change_the_object() -> None:
    spec = route(plugins=None)
    parse_spec("ApisixRoute", spec)
    assert spec == route(plugins=None)


def test_unknown_field_is_ignored_when_parsing() -> None:
    assert parse_spec("ApisixRoute", route(proirity=7)) == parse_spec("ApisixRoute", route())


def test_unknown_field_is_found_with_the_nearest_known_one() -> None:
    spec = {
        **route(
            proirity=7,
            match={"paths": ["/"], "Hosts": ["a"], "remote_addrs": []},
            plugins=[{"name": "x", "config": {"anything": 1}, "zzz": 1}],
        ),
        "tcp": [],
    }
    assert unknown_fields("ApisixRoute", spec) == (
        ("spec.http[0].match.Hosts", "hosts"),
        ("spec.http[0].match.remote_addrs", "remoteAddrs"),
        ("spec.http[0].proirity", "priority"),
        ("spec.http[0].plugins[0].zzz", None),
        ("spec.tcp", None),
    )


def test_both_spellings_of_timeouts_are_known() -> None:
    assert unknown_fields("ApisixUpstream", active_check(unhealthy={"timeouts": 1, "timeout": 2})) == ()


def test_labels_and_arguments_are_free() -> None:
    spec = {
        "subsets": [{"name": "v1", "labels": {"version": "v1"}}],
        "discovery": {"serviceName": "s", "type": "dns", "args": {"a": "b"}},
    }
    assert unknown_fields("ApisixUpstream", spec) == ()


@pytest.mark.parametrize("spec", [None, {"http": 7}, {"http": [None]}, {"http": [{"match": "x"}]}, {"http": None}])
def test_unknown_fields_of_a_broken_spec_are_not_reported(spec: dict[str, Any] | None) -> None:
    assert unknown_fields("ApisixRoute", spec) == ()


def test_many_mistakes_take_linear_time_and_are_reported_in_part() -> None:
    """Each null used to copy its list, which took minutes for these."""
    with pytest.raises(SpecError) as caught:
        parse_spec("ApisixRoute", {"http": [{"name": None} for _ in range(40_000)]})
    assert len(caught.value.problems) == MOST_MISTAKES + 1
    assert caught.value.problems[-1] == ("spec", f"has {80_000 - MOST_MISTAKES} more mistakes")
