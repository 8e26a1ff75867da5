"""Values of known attacks in every string field: refused with their field, or kept as data in one place.

Inert means: the record equals the one for a harmless text, except for this one field, which has the value as it
was written. So it is never a part of another text, a condition, a name or an id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.records import Record
from tests.unit.translation.core.test_text_checks import annotated, translate, with_plugin
from tests.unit.translation.objects import ingress, ingress_rule, route, rule
from tests.unit.translation.robustness.cve_corpus import CORPUS, VALUES
from translation.annotations.reader import PREFIX
from translation.core.outcome import Outcome, records_of

HARMLESS = "harmless"


class Place(NamedTuple):
    """Somewhere for a text.

    Attributes:
        make: Text → object.
        field: The field in problems.
        want: Text → what the record holds for it, in the form of JSON.
    """

    make: Callable[[str], JsonObject]
    field: str
    want: Callable[[str], Any] = lambda text: text


def annotation(name: str, want: Callable[[str], Any] = str.strip, **others: str) -> Place:
    return Place(lambda text: annotated(name, text, **others), f"metadata.annotations[{PREFIX}{name}]", want)


def absolute(text: str) -> str:
    """Return a template that begins with a slash: others are split into two, so that no client chooses the host."""
    return "/" + text.strip().lstrip("/")


def items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def header(text: str) -> Any:
    pairs = (item.partition(":") for item in items(text))
    return {name.strip(): value for name, colon, value in pairs if name.strip() and colon}


def added(text: str) -> list[str]:
    return [f"{name}:{value}" for name, value in header(text).items() if re.fullmatch(r"[^:]*[^:/]", value)]


def origins(text: str) -> str:
    return ",".join(items(text))


REWRITE = {"enable_response_rewrite": "true"}
TEMPLATE = annotation("rewrite-target-regex-template", rewrite_target_regex="/a")
ANNOTATIONS: Mapping[str, Place] = {
    name: annotation(name, want, **others)
    for name, want, others in (
        ("rewrite-target", str.strip, {}),
        ("rewrite-target-regex", str.strip, {"rewrite_target_regex_template": "/b"}),
        ("http-redirect", str.strip, {}),
        ("auth-uri", str.strip, {}),
        ("auth-request-headers", items, {"auth_uri": "http://a/"}),
        ("auth-upstream-headers", items, {"auth_uri": "http://a/"}),
        ("auth-client-headers", items, {"auth_uri": "http://a/"}),
        ("cors-allow-origin", origins, {"enable_cors": "true"}),
        ("cors-allow-headers", str.strip, {"enable_cors": "true"}),
        ("cors-allow-methods", str.strip, {"enable_cors": "true"}),
        ("csrf-key", str, {"enable_csrf": "true"}),
        ("response-rewrite-body", str, REWRITE),
        ("response-rewrite-set-header", header, REWRITE),
        ("response-rewrite-add-header", added, REWRITE),
        ("response-rewrite-remove-header", items, REWRITE),
    )
} | {"rewrite-target-regex-template": TEMPLATE._replace(make=lambda text: TEMPLATE.make(absolute(text)), want=absolute)}
CHECKED = (
    "auth-type",
    "allowlist-source-range",
    "blocklist-source-range",
    "http-allow-methods",
    "http-block-methods",
    "plugin-config-name",
    "svc-namespace",
)
"""Annotations that take none of these values, so that the Ingress is refused."""

LEFT_OUT = (
    "http-redirect-code",
    "upstream-scheme",
    "upstream-retries",
    "upstream-connect-timeout",
    "upstream-read-timeout",
    "upstream-send-timeout",
    "enable-cors",
    "enable-websocket",
    "enable-csrf",
    "enable-response-rewrite",
    "http-to-https",
    "use-regex",
    "auth-ssl-verify",
    "response-rewrite-status-code",
    "response-rewrite-body-base64",
    "configuration-snippet",
    "server-snippet",
)
"""Annotations that ignore such a value: the Ingress is published without it, or not at all."""

FIELDS: Mapping[str, Place] = {
    "ingress path": Place(
        lambda text: ingress(ingress_rule(text, "ImplementationSpecific")),
        "spec.rules[0].http.paths[0].path",
        lambda text: [text or "/*"],
    ),
    "route path": Place(
        lambda text: route(rule(match={"paths": [text]})), "spec.http[0].match.paths[0]", lambda text: [text]
    ),
    "expression": Place(
        lambda text: route(
            rule(match={"exprs": [{"subject": {"scope": "Query", "name": "a"}, "op": "Equal", "value": text}]})
        ),
        "spec.http[0].match.exprs[0].value",
        lambda text: [["arg_a", "==", text]],
    ),
    "plugin": Place(
        lambda text: with_plugin({"deep": [{"text": text}]}),
        "spec.http[0].plugins[0].config.deep[0].text",
        lambda text: {"deep": [{"text": text}]},
    ),
    "plugin header": Place(
        lambda text: with_plugin({"headers": {"set": {"X-A": text}}}),
        "spec.http[0].plugins[0].config.headers.set.X-A",
        lambda text: {"headers": {"set": {"X-A": text}}},
    ),
}
EXACT: Mapping[str, Place] = {**FIELDS, **ANNOTATIONS}


def sent(translation: Outcome) -> list[JsonObject]:
    """Return the bodies as JSON data, without names derived from a path."""
    return [_sent(record) for record in records_of(translation)]


def _sent(record: Record) -> JsonObject:
    body: JsonObject = json.loads(record.payload)
    assert set(body["id"]) <= set("0123456789abcdef")
    return {key: value for key, value in body.items() if key not in ("id", "name")}


def refused(translation: Outcome, field: str) -> bool:
    """Return whether nothing is published and the field is named."""
    named = any(problem.path.startswith(field) for problem in translation.problems if problem.severity == "error")
    assert named == (records_of(translation) == ()), translation.problems
    return named


def substituted(value: Any, old: Any, new: Any) -> tuple[Any, int]:
    """Return a value in which what equals `old` is `new`, and how often it was there."""
    if type(value) is type(old) and value == old:
        return new, 1
    if isinstance(value, dict):
        done = {key: substituted(item, old, new) for key, item in value.items()}
        return {key: item for key, (item, _) in done.items()}, sum(count for _, count in done.values())
    if isinstance(value, list):
        found = [substituted(item, old, new) for item in value]
        return [item for item, _ in found], sum(count for _, count in found)
    return value, 0


def check(place: Place, text: str) -> None:
    got = translate(place.make(text))
    if refused(got, place.field):
        return
    plain = "http://a:80/" if place.field.endswith(("auth-uri]", "cors-allow-origin]")) else f"/{HARMLESS}:{HARMLESS}"
    before, after = sent(translate(place.make(plain))), sent(got)
    wanted = place.want(text)
    if not wanted:
        assert HARMLESS not in json.dumps(after)
        return
    expected, count = substituted(before, place.want(plain), wanted)
    assert (count, after) == (1, expected)


@pytest.mark.parametrize("place", EXACT)
@pytest.mark.parametrize(("cve", "value"), VALUES)
def test_value_is_refused_or_stays_data_in_its_one_place(cve: str, value: str, place: str) -> None:
    assert cve in CORPUS
    check(EXACT[place], value)


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize(("cve", "value"), VALUES)
def test_an_unknown_value_is_rejected(cve: str, value: str, name: str) -> None:
    assert cve in CORPUS
    assert refused(translate(annotated(name, value)), "")


@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize(("cve", "value"), VALUES)
def test_a_meaningless_value_is_skipped(cve: str, value: str, name: str) -> None:
    assert cve in CORPUS
    plain = sent(translate(ingress(ingress_rule())))
    got = translate(annotated(name, value))
    if not refused(got, f"metadata.annotations[{PREFIX}{name}]"):
        assert sent(got) == plain


@pytest.mark.parametrize(("cve", "value"), VALUES)
def test_value_is_not_a_host(cve: str, value: str) -> None:
    assert cve in CORPUS
    assert refused(translate(ingress(ingress_rule(host=value))), "spec.rules[0].host")
    assert refused(translate(route(rule(match={"hosts": [value]}))), "spec.http[0].match.hosts")


TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="a/\r\n\x00\x1b%0a{};$\"'#\\\u2028\u202e\u0430\uff0f.*,:", max_size=40),
    st.sampled_from(["/" + "a" * 65536, "%0d%0a" * 100, "/\uff0e\uff0e/etc", "\ud7ff", "/\u0430"]),
)


@given(place=st.sampled_from(sorted(EXACT)), text=TEXTS)
@settings(max_examples=400, deadline=None)
def test_any_text_is_refused_or_stays_data_in_its_one_place(place: str, text: str) -> None:
    check(EXACT[place], text)


def test_corpus_has_every_attack_and_the_check_can_fail() -> None:
    assert len(CORPUS) == 14
    leaky = Place(lambda text: annotated("rewrite-target", f"/x{text}"), "nowhere")
    with pytest.raises(AssertionError):
        check(leaky, "/a")
