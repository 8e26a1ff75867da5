"""ApisixConsumer → consumers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.problem import Problem
from tests.unit.translation.objects import OPTIONS, get, make, protected_by, world
from tests.unit.translation.settling import bodies, problems, settle
from translation.consumer import translate_consumer
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of


def consumer(name: str = "jack", *, namespace: str = "default", created: str = "", **spec: Any) -> JsonObject:
    found = make("ApisixConsumer", name, namespace=namespace, spec=spec)
    found["metadata"]["creationTimestamp"] = created
    return found


KEYED = {"authParameter": {"keyAuth": {"value": {"key": "k"}}}}


def inline(method: str, **value: Any) -> JsonObject:
    return consumer(authParameter={method: {"value": value}})


def from_secret(method: str) -> JsonObject:
    return consumer(authParameter={method: {"secretRef": {"name": "cred"}}})


def cred(data: Mapping[str, str]) -> JsonObject:
    return make("Secret", "cred", stringData=data)


def translate(*objects: JsonObject, name: str = "jack", options: Options = OPTIONS) -> Outcome:
    found = world(*objects)
    return translate_consumer(get(found, "ApisixConsumer", name), found.view(), options)


def plugins(translation: Outcome) -> Any:
    (record,) = records_of(translation)
    return record.body["plugins"]


def codes(translation: Outcome) -> list[tuple[str, str, str]]:
    return [(problem.severity, problem.code, problem.path) for problem in translation.problems]


VALUES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("keyAuth", "key-auth", {"key": "k"}, {"key": "k"}),
    ("basicAuth", "basic-auth", {"username": "u", "password": "p"}, {"username": "u", "password": "p"}),
    ("ldapAuth", "ldap-auth", {"user_dn": "cn=u"}, {"user_dn": "cn=u"}),
    ("wolfRBAC", "wolf-rbac", {"server": "s", "appid": "a"}, {"server": "s", "appid": "a"}),
    (
        "hmacAuth",
        "hmac-auth",
        {"key_id": "i", "secret_key": "s", "algorithm": "hmac-sha1", "encode_uri_params": False},
        {"key_id": "i", "secret_key": "s", "algorithm": "hmac-sha1", "encode_uri_params": False},
    ),
    (
        "jwtAuth",
        "jwt-auth",
        {"key": "k", "secret": "s", "algorithm": "HS512", "exp": 60, "base64_secret": True},
        {"key": "k", "secret": "s", "algorithm": "HS512", "exp": 60, "base64_secret": True},
    ),
]


@pytest.mark.parametrize(("method", "plugin", "value", "want"), VALUES)
def test_each_method_has_its_plugin(method: str, plugin: str, value: dict[str, Any], want: dict[str, Any]) -> None:
    got = translate(inline(method, **value))
    assert (plugins(got), got.problems) == ({plugin: want}, ())


@pytest.mark.parametrize(("method", "plugin", "value", "want"), VALUES)
def test_a_secret_gives_the_same_as_an_inline_value(
    method: str, plugin: str, value: dict[str, Any], want: dict[str, Any]
) -> None:
    text = {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}
    got = translate(from_secret(method), cred(text))
    assert (plugins(got), got.problems) == ({plugin: want}, ())


def test_an_inline_value_takes_precedence_over_a_secret() -> None:
    both = consumer(authParameter={"keyAuth": {"value": {"key": "k"}, "secretRef": {"name": "absent"}}})
    got = translate(both)
    assert (plugins(got), got.problems) == ({"key-auth": {"key": "k"}}, ())


def test_the_first_of_several_methods_is_used() -> None:
    found = {"basicAuth": {"value": {"username": "u", "password": "p"}}, "keyAuth": {"value": {"key": "k"}}}
    got = translate(consumer(authParameter=found))
    assert plugins(got) == {"key-auth": {"key": "k"}}
    assert codes(got) == [("warning", "CredentialsTwice", "spec.authParameter.basicAuth")]


def test_credentials_take_precedence_over_a_plugin_of_the_same_name() -> None:
    extra = [{"name": "key-auth", "config": {"key": "other"}}, {"name": "limit-count", "config": {"count": 1}}]
    got = translate(consumer(authParameter={"keyAuth": {"value": {"key": "k"}}}, plugins=extra))
    assert plugins(got) == {"key-auth": {"key": "k"}, "limit-count": {"count": 1}}
    assert codes(got) == [("warning", "PluginTwice", "spec.plugins")]


def test_plugins_are_enough_for_a_consumer() -> None:
    got = translate(consumer(plugins=[{"name": "limit-count", "config": {"count": 1}}]))
    assert (plugins(got), got.problems) == ({"limit-count": {"count": 1}}, ())


@pytest.mark.parametrize("spec", [{}, {"authParameter": {}}])
def test_a_consumer_that_lost_its_credentials_is_published_without_them(spec: JsonObject) -> None:
    got = translate(consumer(**spec))
    assert plugins(got) == {}
    assert codes(got) == [("warning", "NoCredentials", "spec.authParameter")]


def test_labels_and_the_name_of_the_controller_are_on_the_record() -> None:
    found = inline("keyAuth", key="k")
    found["metadata"]["labels"] = {"team": "blue", "managed-by": "me"}
    (record,) = records_of(translate(found, options=Options(controller_name="other")))
    want = {"team": "blue", "managed-by": "apisix-ingress-controller", "apisix-ingress/controller": "other"}
    assert record.body["labels"] == want
    assert (str(record.key), record.name) == ("consumers/default_jack", "default_jack")


def test_the_hold_names_the_consumer_even_if_the_spec_is_broken() -> None:
    got = translate(consumer(authParameter={"keyAuth": {}}))
    assert records_of(got) == ()
    assert [(hold.kind, hold.ids) for hold in protected_by(got)] == [("consumers", frozenset({"default_jack"}))]
    assert codes(got) == [("error", "InvalidSpec", "spec.authParameter.keyAuth")]


@pytest.mark.parametrize("name", ["jack.user", "j" * 250])
def test_a_username_that_gateways_reject_makes_the_condition_false(name: str) -> None:
    got = translate(consumer(name, authParameter={"keyAuth": {"value": {"key": "k"}}}), name=name)
    assert codes(got) == [("degraded", "InvalidUsername", "metadata.name")]
    assert [record.key.id for record in records_of(got)] == [f"default_{name}"]


def test_the_older_of_two_objects_with_one_username_wins() -> None:
    auth = {"keyAuth": {"value": {"key": "first"}}}, {"keyAuth": {"value": {"key": "second"}}}
    older = consumer("c", namespace="a-b", created="2026-01-01T00:00:00Z", authParameter=auth[0])
    younger = consumer("b-c", namespace="a", created="2026-01-02T00:00:00Z", authParameter=auth[1])
    got = settle(younger, older)
    assert {path: body["plugins"] for path, body in bodies(got).items()} == {
        "consumers/a_b_c": {"key-auth": {"key": "first"}}
    }
    assert problems(got) == {"ApisixConsumer a/b-c": ["Conflicted"], "ApisixConsumer a-b/c": []}


def test_a_missing_secret_keeps_the_object_from_being_published() -> None:
    got = translate(from_secret("keyAuth"))
    message = "Secret default/cred does not exist; create it or correct the name"
    path = "spec.authParameter.keyAuth.secretRef.name"
    assert (records_of(got), got.problems) == ((), (Problem("SecretNotFound", message, path),))


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        ("keyAuth", {}, "key key is missing; add it"),
        ("basicAuth", {"username": "u", "password": ""}, "key password is missing; add it"),
        ("ldapAuth", {"x": "y"}, "key user_dn is missing; add it"),
        ("hmacAuth", {"key_id": "i"}, "key secret_key is missing; add it"),
        (
            "hmacAuth",
            {"secret_key": "s"},
            "key_id is missing: set key_id or, as older gateways call it, access_key",
        ),
        (
            "jwtAuth",
            {"key": "k", "base64_secret": "yes"},
            "the value of base64_secret must be true or false; replace it",
        ),
        (
            "jwtAuth",
            {"key": "k", "secret": "s", "algorithm": "RS256"},
            "this algorithm needs public_key or private_key; only HS256, HS384 and HS512 work with secret",
        ),
    ],
)
def test_a_secret_that_lacks_something_keeps_the_object_from_being_published(
    method: str, data: dict[str, str], message: str
) -> None:
    got = translate(from_secret(method), cred(data))
    path = f"spec.authParameter.{method}.secretRef.name"
    want = Problem("InvalidSecret", f"Secret default/cred: {message}", path)
    assert (records_of(got), got.problems) == ((), (want,))


def test_all_missing_keys_of_a_secret_are_reported_together() -> None:
    got = translate(from_secret("basicAuth"), cred({}))
    assert [problem.message for problem in got.problems] == [
        "Secret default/cred: key username is missing; add it",
        "Secret default/cred: key password is missing; add it",
    ]


def test_a_value_that_is_not_text_keeps_the_object_from_being_published() -> None:
    binary = make("Secret", "cred", data={"key": "/w=="})
    got = translate(from_secret("keyAuth"), binary)
    message = "Secret default/cred: the value of key is not UTF-8; replace it"
    path = "spec.authParameter.keyAuth.secretRef.name"
    assert (records_of(got), got.problems) == ((), (Problem("InvalidSecret", message, path),))


def test_a_broken_secret_is_reported_together_with_a_broken_plugin() -> None:
    auth = {"keyAuth": {"secretRef": {"name": "absent"}}}
    broken = consumer(authParameter=auth, plugins=[{"name": "echo", "secretRef": "absent"}])
    assert codes(translate(broken)) == [
        ("error", "SecretNotFound", "spec.authParameter.keyAuth.secretRef.name"),
        ("error", "SecretNotFound", "spec.plugins[0].secretRef"),
    ]


@pytest.mark.parametrize("exp", ["0", "-5", "soon", "1" * 30])
def test_a_wrong_exp_in_a_secret_is_reported_and_the_default_is_used(exp: str) -> None:
    got = translate(from_secret("jwtAuth"), cred({"key": "k", "secret": "s", "exp": exp}))
    message = "exp must be an integer of at least 1; the default is used"
    assert plugins(got) == {"jwt-auth": {"key": "k", "secret": "s", "exp": 86400}}
    path = "spec.authParameter.jwtAuth.secretRef.name"
    assert got.problems == (Problem("InvalidNumber", message, path, "warning"),)


def test_a_wrong_inline_number_is_reported_and_the_default_is_used() -> None:
    got = translate(inline("hmacAuth", key_id="i", secret_key="s", clock_skew=-1, max_req_body=-1))
    assert plugins(got) == {"hmac-auth": {"key_id": "i", "secret_key": "s"}}
    assert codes(got) == [("warning", "InvalidNumber", "spec.authParameter.hmacAuth.value")] * 2


def test_numbers_flags_and_lists_of_a_secret_are_read_with_their_white_space() -> None:
    data = {
        "key_id": "i",
        "secret_key": "s\n",
        "clock_skew": " 5\n",
        "keep_headers": "true\n",
        "signed_headers": "User-Agent, X-A,,\n",
    }
    got = translate(from_secret("hmacAuth"), cred(data))
    want = {
        "key_id": "i",
        "secret_key": "s\n",
        "clock_skew": 5,
        "keep_headers": True,
        "signed_headers": ["User-Agent", "X-A"],
        "algorithm": "hmac-sha256",
        "encode_uri_params": True,
    }
    assert (plugins(got), got.problems) == ({"hmac-auth": want}, ())


@pytest.mark.parametrize("empty", ["", "\n"])
def test_an_empty_number_or_flag_of_a_secret_is_treated_as_absent(empty: str) -> None:
    data = {"key": "k", "secret": "s", "exp": empty, "base64_secret": empty, "lifetime_grace_period": empty}
    got = translate(from_secret("jwtAuth"), cred(data))
    assert (plugins(got), got.problems) == ({"jwt-auth": {"key": "k", "secret": "s", "exp": 86400}}, ())


def test_the_algorithm_and_numbers_of_a_secret_may_be_written_loosely() -> None:
    got = translate(from_secret("jwtAuth"), cred({"key": "k", "secret": "s", "exp": "+60", "algorithm": "HS512\n"}))
    want = {"key": "k", "secret": "s", "exp": 60, "algorithm": "HS512"}
    assert (plugins(got), got.problems) == ({"jwt-auth": want}, ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "has no secret, which current gateways require for HS256; add it"),
        (
            {"algorithm": "RS256", "private_key": "p"},
            "has no public_key, which current gateways require for RS256; add it",
        ),
    ],
)
def test_a_jwt_key_that_current_gateways_miss_is_reported(value: dict[str, str], message: str) -> None:
    got = translate(inline("jwtAuth", key="k", **value))
    path = "spec.authParameter.jwtAuth.value"
    assert got.problems == (Problem("JwtKeyMissing", message, path, "warning"),)
    assert len(records_of(got)) == 1


def test_no_message_holds_a_value_of_a_secret() -> None:
    canary = "canary-4711"
    data = {"key": canary, "base64_secret": canary, "exp": canary, "algorithm": canary}
    got = translate(from_secret("jwtAuth"), cred(data))
    assert got.problems
    assert canary not in repr(got)


def test_consumers_of_two_namespaces_share_a_username_only_if_configured() -> None:
    items = [
        {**consumer("a-admin", namespace="team", created="2026-01-01T00:00:00Z"), "spec": KEYED},
        {**consumer("admin", namespace="team-a", created="2026-01-02T00:00:00Z"), "spec": KEYED},
    ]
    assert list(bodies(settle(*items))) == ["consumers/team_a_admin"]
    got = settle(*items, options=replace(OPTIONS, consumer_names="unambiguous"))
    assert sorted(bodies(got)) == ["consumers/team-a_admin", "consumers/team_a-admin"]
    assert list(problems(got).values()) == [[], []]
