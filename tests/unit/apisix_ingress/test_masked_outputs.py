"""Every secret field of every plugin, through everything that shows a body: none of them may show its value."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apisix_ingress.commands.diff import lines
from apisix_ingress.difference import DIFFERS, HIDDEN, difference, masked
from apisix_ingress.gateway.words import scrub
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secret_fields import PLUGIN_FIELDS
from apisix_ingress.ownership import orphans
from apisix_ingress.page.masking import shown_body
from apisix_ingress.redaction import REDACTED, sanitize_mapping
from apisix_ingress.survey.masking import Mask
from tests.canary import FORMS, marked
from tests.factories import make_record
from tests.unit.apisix_ingress.sides import our_record, snapshot, wanted

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
    return json.dumps(shown_body(make_record(body=body), frozenset()))


def page_of_metadata(body: JsonObject) -> str:
    ((plugin, inner),) = body["plugins"].items()
    record = make_record(kind="plugin_metadata", body=inner)
    record = type(record)(record.key._replace(id=plugin), record.name, inner)
    return json.dumps(shown_body(record, frozenset()))


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


def test_code_that_does_not_compile_is_not_repeated() -> None:
    said = f"""failed to loadstring: [string "local t = '{WORD}..."]:1: unexpected symbol near '"{WORD}"'"""
    assert (
        scrub(said, {"plugins": {"serverless-pre-function": {"functions": ["x"]}}})
        == "failed to loadstring: *** unexpected symbol ***"
    )


def test_marks_are_those_that_each_output_had() -> None:
    body = {"plugins": {"loki-logger": {"headers": {"X-Any": WORD}}}}
    assert shown_body(make_record(body=body), frozenset())["plugins"] == {"loki-logger": {"headers": REDACTED}}
    assert Mask().document(body)["plugins"] == {"loki-logger": {"headers": REDACTED}}
    other = {"plugins": {"loki-logger": {"headers": {"X-Any": "other"}}}}
    assert masked("routes", body, other) == (
        {"plugins": {"loki-logger": {"headers": HIDDEN}}},
        {"plugins": {"loki-logger": {"headers": DIFFERS}}},
    )


def test_a_side_with_another_plugin_at_its_place_hides_that_ones_secrets() -> None:
    one = {"rules": [["csrf", {"key": WORD}], {"name": "key-auth", "config": {"key": WORD}}]}
    other = {"rules": [["limit-count", {"count": 1}], {"name": "odd", "config": {"count": 1}}]}
    for pair in ((one, other), (other, one)):
        got = json.dumps(masked("routes", *pair))
        assert not any(form in got for form in FORMS)
        assert '"count": 1' in got
