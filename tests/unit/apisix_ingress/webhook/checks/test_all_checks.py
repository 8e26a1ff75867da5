"""Checks of objects of every kind: what is denied, and what other controllers own."""

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Meta, Pod
from apisix_ingress.webhook.checks.all_checks import CLASS_CHANGED, SPEC_MISSING
from apisix_ingress.webhook.review import ALLOWED, Verdict
from crds import KINDS
from tests.factories import make_custom, make_namespace, make_secret, make_service
from tests.unit.apisix_ingress.webhook.checks.objects import INGRESS, WITH_CLASS
from tests.unit.apisix_ingress.webhook.worlds import (
    ask,
    make_checks,
    make_review,
    manifest,
    plugin,
    route_spec,
    rule,
    tls_secret,
)
from translation.core.options import Options


def named(kind: str) -> str:
    return "default" if kind == "ApisixClusterConfig" else "web"


def test_each_kind_has_a_valid_object() -> None:
    assert {kind for kind, _ in WITH_CLASS} == KINDS.keys()


@pytest.mark.parametrize(("kind", "spec"), WITH_CLASS)
def test_valid_object_of_each_kind_is_allowed_without_a_word(kind: str, spec: JsonObject) -> None:
    checks = make_checks(make_service(), tls_secret("cert"))
    assert ask(checks, manifest(spec, kind=kind, name=named(kind))) == ALLOWED


def test_valid_ingress_is_allowed_without_a_word() -> None:
    assert ask(make_checks(make_service()), manifest(INGRESS, kind="Ingress")) == ALLOWED


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", ""])
def test_other_operations_than_create_and_update_are_allowed(operation: str) -> None:
    review = make_review(manifest({"http": 7}))
    assert make_checks().verdict(replace(review, operation=operation)) == ALLOWED


def test_status_is_ignored() -> None:
    review = make_review(manifest({"http": 7}), manifest({"http": 8}), subresource="status")
    assert make_checks().verdict(review) == ALLOWED


@pytest.mark.parametrize(
    ("kind", "group", "want"),
    [
        ("Pod", "", "pods is not supported by this webhook: it was not checked"),
        ("ApisixRoute", "example.org", "apisixroutes.example.org is not supported by this webhook: it was not checked"),
        ("Secret", "", "secrets is not supported by this webhook: it was not checked"),
    ],
)
def test_a_foreign_kind_is_allowed_with_a_warning(kind: str, group: str, want: str) -> None:
    review = make_review({"kind": kind, "metadata": {"name": "web"}}, group=group)
    assert make_checks().verdict(review) == Verdict(warnings=(want,))


def test_object_that_is_being_deleted_is_allowed() -> None:
    broken = manifest({"http": 7}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert ask(make_checks(), broken, manifest({"http": 8})) == ALLOWED


def test_object_of_another_class_is_allowed() -> None:
    checks = make_checks(options=Options(ingress_class="ours"))
    assert ask(checks, manifest({"ingressClassName": "theirs", "http": 7})) == ALLOWED
    assert ask(checks, manifest({"ingressClassName": "ours", "http": 7})).denials


def test_object_of_a_namespace_that_is_not_selected_is_allowed() -> None:
    options = Options(namespace_selector=parse_selector("team=a"))
    checks = make_checks(make_namespace(), make_namespace("a", labels={"team": "a"}), options=options)
    assert ask(checks, manifest({"http": 7})) == ALLOWED
    assert ask(checks, manifest({"http": 7}, namespace="a")).denials


def test_mistakes_of_a_spec_are_denied_each_with_its_path() -> None:
    spec = {"http": [rule(match={"paths": "/*"}), {"name": "two", "backends": []}]}
    got = ask(make_checks(), manifest(spec))
    assert [text.split(":")[0] for text in got.denials] == ["spec.http[0].match.paths", "spec.http[1].match"]


def test_bad_annotation_that_guards_access_is_denied() -> None:
    item = manifest(INGRESS, kind="Ingress", annotations={"k8s.apisix.apache.org/auth-type": "magic"})
    got = ask(make_checks(make_service()), item)
    assert got.denials == (
        "metadata.annotations[k8s.apisix.apache.org/auth-type]: 'magic' is unknown; use keyAuth or basicAuth",
    )


def test_code_that_the_settings_refuse_is_denied() -> None:
    checks = make_checks(make_service(), options=Options(code_plugins="refuse"), books={})
    got = ask(checks, manifest(route_spec(plugin("serverless-pre-function"))))
    assert [text.split(":")[0] for text in got.denials] == ["spec.http[0].plugins[0].name"]


def test_a_record_that_lets_clients_choose_a_host_is_denied() -> None:
    rewrite = plugin("proxy-rewrite", {"regex_uri": ["^/api(.*)", "$1"]})
    found = ask(make_checks(make_service(), books={}), manifest(route_spec(rewrite)))
    assert "may become a path without a slash at its beginning" in found.denials[0]


def test_a_consumer_name_invalid_for_gateways_is_denied() -> None:
    spec = dict(WITH_CLASS)["ApisixConsumer"]
    got = ask(make_checks(), manifest(spec, kind="ApisixConsumer", name="a.b"))
    assert got.denials[0].startswith("metadata.name: the username default_a.b is invalid")


@pytest.mark.parametrize("kind", ["ApisixUpstream", "ApisixTls"])
def test_a_missing_spec_is_reported_as_in_1_8(kind: str) -> None:
    assert ask(make_checks(), manifest(None, kind=kind)) == Verdict((SPEC_MISSING,))


def test_object_that_is_nested_too_deeply_to_be_read_is_denied() -> None:
    deep: JsonObject = {}
    for _ in range(300):
        deep = {"x": deep}
    assert ask(make_checks(), manifest(deep)) == Verdict(
        ("it has more than 200 levels of nesting, which is not supported",)
    )
    assert ask(make_checks(make_service()), manifest(route_spec()), manifest(deep)) == ALLOWED


def test_object_that_cannot_be_read_is_denied() -> None:
    broken = manifest(route_spec(), generation="x")
    assert ask(make_checks(), broken) == Verdict(("it cannot be read: metadata.generation must be a number",))
    assert ask(make_checks(make_service()), manifest(route_spec()), broken) == ALLOWED


def test_an_object_with_a_generated_name_is_checked() -> None:
    item = manifest({"http": 7}, name="", generateName="web-")
    assert ask(make_checks(), item).denials == ("spec.http: must be a list (lines that start with -): HTTP rules",)


@pytest.mark.parametrize(("kind", "spec"), WITH_CLASS)
@pytest.mark.parametrize("after", ["other", "", None])
def test_class_may_not_be_changed(kind: str, spec: JsonObject, after: str | None) -> None:
    checks = make_checks(make_service(), tls_secret("cert"), options=Options(ingress_class="apisix"))
    changed = spec if after is None else {**spec, "ingressClassName": after}
    old = manifest({**spec, "ingressClassName": "apisix"}, kind=kind, name=named(kind))
    assert ask(checks, manifest(changed, kind=kind, name=named(kind)), old) == Verdict((CLASS_CHANGED,))


@pytest.mark.parametrize(("kind", "spec"), WITH_CLASS)
def test_class_may_be_given_to_an_object_without_one(kind: str, spec: JsonObject) -> None:
    checks = make_checks(make_service(), tls_secret("cert"), options=Options(ingress_class="apisix"))
    new = manifest({**spec, "ingressClassName": "apisix"}, kind=kind, name=named(kind))
    assert ask(checks, new, manifest(spec, kind=kind, name=named(kind))) == ALLOWED


def test_a_class_may_not_be_changed_to_the_controllers_either() -> None:
    checks = make_checks(options=Options(ingress_class="apisix"))
    old, new = (manifest({**route_spec(), "ingressClassName": name}) for name in ("theirs", "apisix"))
    assert ask(checks, new, old) == Verdict((CLASS_CHANGED,))


def test_class_of_a_stranger_may_be_changed_to_another_stranger() -> None:
    checks = make_checks(options=Options(ingress_class="apisix"))
    old, new = (manifest({**route_spec(), "ingressClassName": name}) for name in ("theirs", "somebody"))
    assert ask(checks, new, old) == ALLOWED


def test_class_of_an_ingress_may_be_changed() -> None:
    old = manifest(INGRESS, kind="Ingress")
    assert ask(make_checks(), manifest({**INGRESS, "ingressClassName": "nginx"}, kind="Ingress"), old) == ALLOWED


def test_unchanged_fields_are_not_checked() -> None:
    broken = {"http": [rule(match={})]}
    old, labelled = manifest(broken), manifest(broken, labels={"a": "b"}, finalizers=["x/y"])
    assert ask(make_checks(), labelled, old) == ALLOWED
    assert ask(make_checks(), manifest({"http": [rule(match={}, name="other")]}), old).denials


def test_annotations_of_an_ingress_count_as_a_change() -> None:
    old = manifest(INGRESS, kind="Ingress")
    new = manifest(INGRESS, kind="Ingress", annotations={"k8s.apisix.apache.org/auth-type": "magic"})
    assert ask(make_checks(make_service()), new, old).denials


def test_check_leaves_no_trace_in_the_world() -> None:
    route = make_custom("old", spec=route_spec())
    checks = make_checks(make_service(), route)
    world = checks.world
    heard: list[Any] = []
    world.listen(heard.append)
    want = (world.desired.records("default"), dict(world.reports), world.claims.of(make_service().meta.key))
    for item in (manifest(route_spec()), manifest({"http": 7}, name="old")):
        ask(checks, item)
    got = (world.desired.records("default"), dict(world.reports), world.claims.of(make_service().meta.key))
    assert (got, heard) == (want, [])
    assert world.stores["ApisixRoute"].keys() == (route.meta.key,)
    assert tuple(world.dependents.of(make_service().meta.key)) == (route.meta.key,)


def test_a_gateway_that_never_responded_disables_only_the_plugin_check() -> None:
    checks = make_checks(make_service(), books={"default": None})
    got = ask(checks, manifest(route_spec(plugin("no-such-plugin"))))
    want = "plugins were not checked: the schemas of gateway cluster default are unknown at present"
    assert got == Verdict(warnings=(want,))
    assert ask(checks, manifest(route_spec())) == ALLOWED


TELLING = (
    ("ApisixTls", {"hosts": ["a.example.org"], "secret": {"name": "cert", "namespace": "default"}}),
    ("ApisixTls", {"hosts": ["b.example.org"], "secret": {"name": "cert", "namespace": "default"}}),
    ("ApisixTls", {"hosts": ["taken.example.org"], "secret": {"name": "cert", "namespace": "default"}}),
    ("ApisixConsumer", {"authParameter": {"keyAuth": {"secretRef": {"name": "cert"}}}}),
    ("ApisixUpstream", {"tlsSecret": {"name": "cert", "namespace": "default"}}),
    (
        "Ingress",
        {"ingressClassName": "apisix", "tls": [{"hosts": ["taken.example.org"], "secretName": "cert"}]},
    ),
    ("ApisixRoute", route_spec(plugin("limit-count", {"count": 1}, secretRef="cert"))),
)


@pytest.mark.parametrize(("kind", "spec"), TELLING)
def test_unauthorized_clients_learn_nothing_of_secrets_and_other_namespaces(kind: str, spec: JsonObject) -> None:
    taken = make_custom(
        "theirs",
        namespace="other",
        kind="ApisixTls",
        spec={"hosts": ["taken.example.org"], "secret": {"name": "theirs", "namespace": "other"}},
        created="2020-01-01",
    )
    around = (make_service(), make_namespace("other"))
    worlds = (
        (),
        (tls_secret("cert"),),
        (make_secret("cert", data={"key": b"abc", "count": b"0"}),),
        (tls_secret("cert"), taken, tls_secret("theirs", namespace="other")),
    )
    answers = []
    for found in worlds:
        checks = replace(make_checks(*around, *found), shows_others=False)
        answers.append(ask(checks, manifest(spec, kind=kind)))
    assert answers == [ALLOWED] * len(worlds)


def test_unknown_clients_learn_about_problems_in_the_object_itself() -> None:
    spec = {"hosts": ["a b"], "secret": {"name": "absent", "namespace": "default"}}
    got = ask(replace(make_checks(), shows_others=False), manifest(spec, kind="ApisixTls"))
    assert got.denials[0].startswith("spec.hosts[0]: ")
    assert got.warnings == ()


def test_address_of_another_namespace_warns_authorized_clients_only() -> None:
    options = Options(external_addresses="refuse-internal", cross_namespace="grant")
    pod = Pod(Meta("Pod", "other", "web-0"), ("10.1.0.9",))
    checks = make_checks(pod, make_namespace("other"), options=options)
    spec = {"externalNodes": [{"type": "Domain", "name": "10.1.0.9"}]}
    got = ask(checks, manifest(spec, kind="ApisixUpstream"))
    assert got.denials == ()
    assert "an address in another namespace" in got.warnings[0]
    assert ask(replace(checks, shows_others=False), manifest(spec, kind="ApisixUpstream")) == ALLOWED
