"""Every secret field of every plugin in every output of bodies: no output may contain its value."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apisix_ingress.commands.gateways.diff import lines
from apisix_ingress.diagnostics.object_masking import Mask
from apisix_ingress.diagnostics.reports.diff import DIFFERS, HIDDEN, difference, masked
from apisix_ingress.diagnostics.reports.orphans import orphans
from apisix_ingress.gateway.adminapi.error_text import scrub
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.fields import PLUGIN_FIELDS
from apisix_ingress.model.secrets.redaction import sanitize_mapping
from apisix_ingress.model.secrets.value_mask import REDACTED
from apisix_ingress.statuspage.record_masking import shown_body
from tests.canary import FORMS, marked
from tests.factories import make_record
from tests.unit.apisix_ingress.diagnostics.sides import our_record, snapshot, wanted

WORD = marked("of-a-plugin")
VALUES: tuple[Any, ...] = (WORD, {"X-Any": WORD}, [WORD], [{"a": {"b": WORD}}])
FIELDS = [(plugin, path) for plugin, paths in PLUGIN_FIELDS.items() for path in paths]
OPEN = "/still-shown"


def config(path: str, value: Any, *, listed: bool) -> JsonObject:
    """Return a configuration that has a value at a path; `listed`: every level above it is a list."""
    head, _, rest = path.partition(".")
    inner = config(rest, value, listed=listed) if rest else value
    return {head: [inner] if rest and listed else inner, "open_uri": OPEN}


def bodies(plugin: str, path: str) -> Iterator[JsonObject]:
    for value in VALUES:
        for listed in (False, True):
            yield {"uri": OPEN, "plugins": {plugin: config(path, value, listed=listed)}}


def page(body: JsonObject) -> str:
    return json.dumps(shown_body(make_record(body=body)))


def page_of_metadata(body: JsonObject) -> str:
    ((plugin, inner),) = body["plugins"].items()
    record = make_record(kind="plugin_metadata", body=inner)
    record = type(record)(record.key._replace(id=plugin), record.name, inner)
    return json.dumps(shown_body(record))


def diff_of_metadata(body: JsonObject) -> str:
    ((plugin, inner),) = body["plugins"].items()
    return json.dumps(masked("plugin_metadata", inner, {"open_uri": OPEN}, plugin))


def diff_json(body: JsonObject) -> str:
    return json.dumps([difference(wanted(our_record(**body)), there) for there in (snapshot(), snapshot(our_record()))])


def diff_text(body: JsonObject) -> str:
    found = (difference(wanted(our_record()), snapshot(our_record(**body))), json.loads(diff_json(body))[0])
    return "\n".join(line for document in found for line, _ in lines(document))


def bundle(body: JsonObject) -> str:
    return json.dumps(Mask().document({"records": {"routes/1": body}}))


def bundle_of_manifest(body: JsonObject) -> str:
    plugins = [{"name": name, "enable": True, "config": inner} for name, inner in body["plugins"].items()]
    return json.dumps(Mask().document([{"kind": "ApisixRoute", "spec": {"http": [{"plugins": plugins, "x": OPEN}]}}]))


def bundle_of_annotation(body: JsonObject) -> str:
    return json.dumps(Mask().document({"annotations": {"any": json.dumps(body)}}))


def log(body: JsonObject) -> str:
    return json.dumps(sanitize_mapping({"event": "record.put", "body": body}))


OUTPUTS = [
    *(page, page_of_metadata, diff_json, diff_of_metadata, diff_text),
    *(bundle, bundle_of_manifest, bundle_of_annotation, log),
]


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("plugin", "path"), FIELDS)
def test_no_output_shows_a_secret_of_a_plugin(plugin: str, path: str, output: Callable[[JsonObject], str]) -> None:
    for body in bodies(plugin, path):
        got = output(body)
        assert not any(form in got for form in FORMS)
        assert OPEN in got


@pytest.mark.parametrize(("plugin", "path"), FIELDS)
def test_no_word_of_a_gateway_repeats_a_secret_of_a_plugin(plugin: str, path: str) -> None:
    for body in bodies(plugin, path):
        for words in (f"refused {WORD} at /a", f'bad "{WORD}"', f"with {WORD}"):
            assert not any(form in scrub(words, body) for form in FORMS)


def test_no_orphan_shows_its_body() -> None:
    plugins = {plugin: config(path, WORD, listed=False) for plugin, path in FIELDS}
    got = orphans(wanted(), snapshot(our_record(plugins=plugins)))
    assert len(got["orphans"]) == 1
    assert not any(form in json.dumps(got) for form in FORMS)


@pytest.mark.parametrize(
    "body",
    [
        {"script": f"local t = '{WORD}'"},
        {"filter_func": f"function() return '{WORD}' end"},
        {"plugins": {"prometheus": {"_meta": {"pre_function": f"return '{WORD}'"}}}},
        {"plugins": {"proxy-rewrite": {"headers": {"set": {"Authorization": WORD}, "add": [f"X-Api-Token: {WORD}"]}}}},
        {
            "plugins": {
                "http-logger": {"headers": {"X-Any": WORD}, "uri": f"https://a.example/?a=b&access_token={WORD}"}
            }
        },
        {"upstream": {"checks": {"active": {"req_headers": [f"Authorization: odd {WORD}"]}}}},
        {"plugins": {"multi-auth": {"auth_plugins": [{"key-auth": {"key": WORD}}]}}},
        {"plugins": {"workflow": {"rules": [{"actions": [["csrf", {"key": WORD}]]}]}}},
        {"plugins": {"odd": {"text": json.dumps({"token": WORD})}}},
        {"plugins": {"odd": {"text": f'{{"token": "{WORD}", "token": ""}}'}}},
    ],
)
@pytest.mark.parametrize("output", [page, diff_json, diff_text, bundle], ids=lambda each: each.__name__)
def test_code_headers_and_texts_with_secrets_are_hidden(body: JsonObject, output: Callable[[JsonObject], str]) -> None:
    assert not any(form in output(body) for form in FORMS)


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{WORD}@a.example/x",
        f"https://user:a@{WORD}@a.example/x",
        f"https://user:a/{WORD}@a.example/x",
        f"redis://:{WORD}@a.example",
        f"user:{WORD}@a.example",
        f"root:{WORD}@tcp(db:3306)/x",
        f"/x?next=https%3A%2F%2Fuser%3A{WORD}%40a.example%2F",
        *(f"/x?a=b&{name}={WORD}" for name in ("token", "access_token", "sig", "code", "pwd", "pass", "auth", "jwt")),
        *(
            f"/x?{name}={WORD}&a=b"
            for name in ("session", "api-key", "apikey", "X-Amz-Credential", "passphrase", "sid")
        ),
        f"/x?access%5Ftoken={WORD}",
        f"/x?token=a'{WORD}",
        f"/x?next=%2Fy%3Ftoken%3D{WORD}",
        f"/x#access_token={WORD}",
        f"token={WORD}",
        f"sid=1; token={WORD}",
        f"Authorization: custom {WORD}",
        f"Authorization:{WORD}",
        f"A: b\nCookie: a=b; c={WORD}",
        f"X-Api-Token: {WORD}",
    ],
)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda each: each.__name__)
def test_no_output_shows_a_credential_inside_of_a_text(text: str, output: Callable[[JsonObject], str]) -> None:
    got = output({"uri": OPEN, "plugins": {"odd": {"first": text, "list": [text, {text: 1}], "open_uri": OPEN}}})
    assert not any(form in got for form in FORMS)
    assert OPEN in got


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "Proxy-Authorization", "Authentication", "Cookie", "Set-Cookie", "X-API-KEY", "X-Auth"),
        *(
            "X-Auth-User",
            "X-JWT",
            "X-Goog-IAP-JWT-Assertion",
            "X-Pass",
            "X-PSK",
            "X-Bearer",
            "X-Sig",
            "X-Hub-Signature",
        ),
    ],
)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda each: each.__name__)
def test_no_output_shows_the_value_of_a_header_of_credentials(name: str, output: Callable[[JsonObject], str]) -> None:
    for headers in (
        {"set": {name: WORD}},
        {name: [WORD]},
        {"add": [f"{name}: {WORD}"]},
        [{"name": name, "value": WORD}],
    ):
        got = output({"uri": OPEN, "plugins": {"proxy-rewrite": {"headers": headers, "open_uri": OPEN}}})
        assert not any(form in got for form in FORMS)
        assert OPEN in got


@pytest.mark.parametrize(
    "condition",
    [
        ["arg_token", "==", WORD],
        ["arg_token", WORD],
        ["OR", ["http_authorization", "!", "==", WORD], ["http_x", "==", "y"]],
        ["http_x_api_key", "in", [WORD, "b"]],
        ["cookie_sid", "~~", f"^{WORD}$"],
        ["post_arg.password", "~=", WORD],
        ["http_x-any", "==", f"Bearer {WORD}"],
    ],
)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda each: each.__name__)
def test_no_output_shows_what_a_credential_is_compared_with(
    condition: list[Any], output: Callable[[JsonObject], str]
) -> None:
    rules = [{"match": [{"vars": [["uri", "==", "/a"], condition]}]}]
    got = output({"uri": OPEN, "vars": [condition], "plugins": {"traffic-split": {"rules": rules, "open_uri": OPEN}}})
    assert not any(form in got for form in FORMS)
    assert OPEN in got


@pytest.mark.parametrize(
    "expression",
    [
        {"subject": {"scope": "Header", "name": "Authorization"}, "op": "Equal", "value": WORD},
        {"subject": {"scope": "Query", "name": "token"}, "op": "In", "set": [WORD]},
        {"subject": {"scope": "Variable", "name": "http_x_api_key"}, "op": "Equal", "value": WORD},
    ],
)
def test_bundle_shows_no_credential_of_an_expression(expression: JsonObject) -> None:
    got = json.dumps(Mask().document({"spec": {"http": [{"match": {"exprs": [expression], "paths": [OPEN]}}]}}))
    assert not any(form in got for form in FORMS)
    assert OPEN in got


def test_diff_reports_that_a_hidden_operand_differs() -> None:
    before, after = ({"vars": [["arg_token", "==", value], ["arg_a", "==", "b"]]} for value in (WORD, "other"))
    assert masked("routes", before, after) == (
        {"vars": [["arg_token", "==", HIDDEN], ["arg_a", "==", "b"]]},
        {"vars": [["arg_token", "==", DIFFERS], ["arg_a", "==", "b"]]},
    )


@pytest.mark.parametrize(
    "body",
    [
        {"uri": "/a?page=2&sort=up#part", "hosts": ["a.example", "*.b.example"]},
        {"image": "nginx:1.25@sha256:0123abcd", "mail": "mailto:a@b.example", "cdn": "https://a.example:443/x@1.2/y@3"},
        {"vars": [["arg_canary", "==", "yes"], ["cookie_beta", "!", "in", ["a"]], ["http_x_user", "==", "7"]]},
        {"headers": {"set": {"X-Forwarded-Proto": "https", "Host": "a.example"}, "remove": ["Authorization"]}},
        {"nodes": [{"host": "fd00::1", "port": 80}, {"host": "a.example", "port": 80, "weight": 1}]},
        {"subject": {"scope": "Path"}, "op": "Equal", "value": "/a"},
        {"time": "2026-01-01T10:00:00Z", "cors": {"allow_headers": "Authorization,Cookie"}},
    ],
)
@pytest.mark.parametrize("output", [page, diff_json, bundle, log], ids=lambda each: each.__name__)
def test_texts_similar_to_credentials_are_shown(body: JsonObject, output: Callable[[JsonObject], str]) -> None:
    got = output({"plugins": {"odd": body}})
    assert REDACTED not in got
    assert HIDDEN not in got


def test_masking_changes_nothing_of_the_body() -> None:
    body = {"vars": [["arg_token", "==", WORD]], "plugins": {"odd": {"uri": f"https://a:{WORD}@b/?token={WORD}"}}}
    before = json.dumps(body)
    for output in OUTPUTS:
        output({"plugins": {}, **body})
    assert json.dumps(body) == before


def test_code_that_does_not_compile_is_not_repeated() -> None:
    said = f"""failed to loadstring: [string "local t = '{WORD}..."]:1: unexpected symbol near '"{WORD}"'"""
    assert (
        scrub(said, {"plugins": {"serverless-pre-function": {"functions": ["x"]}}})
        == "failed to loadstring: *** unexpected symbol ***"
    )


def test_marks_are_those_of_each_output() -> None:
    body = {"plugins": {"loki-logger": {"headers": {"X-Any": WORD}}}}
    assert shown_body(make_record(body=body))["plugins"] == {"loki-logger": {"headers": REDACTED}}
    assert Mask().document(body)["plugins"] == {"loki-logger": {"headers": REDACTED}}
    other = {"plugins": {"loki-logger": {"headers": {"X-Any": "other"}}}}
    assert masked("routes", body, other) == (
        {"plugins": {"loki-logger": {"headers": HIDDEN}}},
        {"plugins": {"loki-logger": {"headers": DIFFERS}}},
    )


def test_a_diff_of_different_plugins_masks_the_secrets_of_both() -> None:
    one = {"rules": [["csrf", {"key": WORD}], {"name": "key-auth", "config": {"key": WORD}}]}
    other = {"rules": [["limit-count", {"count": 1}], {"name": "odd", "config": {"count": 1}}]}
    for pair in ((one, other), (other, one)):
        got = json.dumps(masked("routes", *pair))
        assert not any(form in got for form in FORMS)
        assert '"count": 1' in got
