"""The ConfigMap with plugin metadata → plugin metadata records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from tests.unit.translation.objects import make, protected_by, world
from tests.unit.translation.settling import METADATA_SOURCE, WITH_METADATA, bodies, problems, settle
from translation.core.outcome import NOTHING, Outcome, records_of
from translation.plugin_metadata import translate_plugin_metadata

PATH = "data[config.yaml]"


def config_map(text: str | None, *, name: str = "plugin-metadata", namespace: str = "ingress-apisix") -> JsonObject:
    data = {} if text is None else {"config.yaml": text}
    return make("ConfigMap", name, namespace=namespace, data=data)


def translate(text: str | None, **options: Any) -> Outcome:
    found = world(config_map(text))
    item = found.stores["ConfigMap"].get(METADATA_SOURCE)
    assert isinstance(item, ConfigMap)
    return translate_plugin_metadata(item, found.view(), replace(WITH_METADATA, **options))


def records(translation: Outcome) -> dict[str, Any]:
    return {str(record.key): record.body for record in records_of(translation)}


def codes(translation: Outcome) -> list[tuple[str, str, str]]:
    return [(problem.severity, problem.code, problem.path) for problem in translation.problems]


def test_each_plugin_is_a_record_of_its_clusters() -> None:
    text = """
    - cluster: east
      plugins:
      - {name: http-logger, metadata: {log_format: {host: $host}}}
      - {name: datadog}
    - cluster: west
      plugins:
      - {name: http-logger, metadata: {log_format: {host: $host}}}
    """
    got = translate(text, clusters=frozenset({"east", "west"}))
    assert records(got) == {
        "plugin_metadata/http-logger": {"log_format": {"host": "$host"}},
        "plugin_metadata/datadog": {},
    }
    assert [record.clusters for record in records_of(got)] == [frozenset({"east", "west"}), frozenset({"east"})]
    assert got.problems == ()


def test_metadata_that_differs_by_cluster_is_not_published() -> None:
    text = "[{cluster: east, plugins: [{name: cors}]}, {cluster: west, plugins: [{name: cors, metadata: {a: 1}}]}]"
    got = translate(text, clusters=frozenset({"east", "west"}))
    assert (records(got), codes(got)) == ({}, [("error", "MetadataDiffers", PATH)])


def test_an_unknown_cluster_is_reported_and_skipped() -> None:
    got = translate("[{cluster: elsewhere, plugins: [{name: cors}]}, {cluster: default, plugins: [{name: datadog}]}]")
    assert records(got) == {"plugin_metadata/datadog": {}}
    assert codes(got) == [("warning", "ClusterNotFound", f"{PATH}[0].cluster")]


def test_the_last_of_two_entries_for_one_plugin_is_used() -> None:
    got = translate("[{cluster: default, plugins: [{name: cors}, {name: cors, metadata: {a: 1}}]}]")
    assert records(got) == {"plugin_metadata/cors": {"a": 1}}
    assert codes(got) == [("warning", "PluginTwice", f"{PATH}[0].plugins[1]")]


@pytest.mark.parametrize("source", [None, ObjectKey("ConfigMap", "default", "other")])
def test_another_config_map_has_no_effect(source: ObjectKey | None) -> None:
    assert translate("[]", plugin_metadata=source) == NOTHING


def test_an_empty_document_gives_no_records() -> None:
    got = translate("")
    assert (records(got), got.problems) == ({}, ())


def test_a_missing_document_gives_no_records_and_a_warning() -> None:
    got = translate(None)
    assert (records(got), codes(got)) == ({}, [("warning", "NothingGiven", PATH)])


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("- cluster: [\n", PATH, "is not YAML in line 2; correct it"),
        ("[" * 101 + "]" * 101, PATH, "has more than 100 levels of nesting; flatten it"),
        ("- a: &x 1\n- b: *x", PATH, "contains a YAML alias (*name), which is not supported; write the value out"),
        ("a: 2026-99-99", PATH, "contains a value or character that is invalid in YAML; put it in quotes"),
        ("a: \x01", PATH, "contains a value or character that is invalid in YAML; put it in quotes"),
        ("- plugins: []", f"{PATH}[0].cluster", "Field required"),
        ("cluster: default", PATH, "Input should be a valid tuple"),
        (
            "[{cluster: default, plugins: [{name: cors, metadata: {1: a}}]}]",
            f"{PATH}[0].plugins[0].metadata",
            "Input should be a valid string",
        ),
        (
            "[{cluster: default, plugins: [{name: cors, metadata: {a: {1: b}}}]}]",
            f"{PATH}[0].plugins[0].metadata",
            "has a key that is not a string, or a value that JSON cannot represent; put it in quotes",
        ),
    ],
)
def test_a_broken_document_is_reported_and_publishes_nothing(text: str, path: str, message: str) -> None:
    got = translate(text)
    (problem,) = got.problems
    assert problem.path.startswith(path)
    assert (records(got), problem.message, problem.severity) == ({}, message, "error")


def test_a_name_that_would_address_another_record_is_refused() -> None:
    got = translate("[{cluster: default, plugins: [{name: cors/x}]}]")
    assert (records(got), codes(got)) == ({}, [("error", "InvalidSpec", f"{PATH}[0].plugins[0].name")])


def test_metadata_is_published_as_json_has_it() -> None:
    got = translate("[{cluster: default, plugins: [{name: cors, metadata: {day: 2026-01-02}}]}]")
    assert records(got) == {"plugin_metadata/cors": {"day": "2026-01-02"}}


@pytest.mark.parametrize("start", ["- ", "- cluster: [\n- "])
def test_what_a_document_names_is_held_even_if_it_is_broken(start: str) -> None:
    text = start + 'cluster: default\n  plugins:\n  - name: cors\n  - {"name": "http-logger"}\n'
    assert [(hold.kind, hold.ids) for hold in protected_by(translate(text))] == [
        ("plugin_metadata", frozenset({"cors", "http-logger"}))
    ]


def test_no_message_holds_metadata() -> None:
    canary = "canary-4711"
    texts = [f"- cluster: {{{canary}: [", f"[{{cluster: default, plugins: [{{name: 5, metadata: {canary}}}]}}]"]
    for text in texts:
        got = translate(text)
        assert got.problems
        assert canary not in repr(got)


def test_the_provider_reads_one_config_map() -> None:
    text = "[{cluster: default, plugins: [{name: cors}]}]"
    got = settle(config_map(text), config_map(text, name="other"), config_map(text, namespace="default"))
    assert problems(got) == {"ConfigMap ingress-apisix/plugin-metadata": []}
    assert bodies(got) == {"plugin_metadata/cors": {}}
