"""Annotations that the ConfigMap of ingress-nginx forbids."""

from __future__ import annotations

import pytest

from tests.unit.translation.nginx.host.bodies import config, routes
from tests.unit.translation.nginx.objects import ingress, translated
from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.risks import _RISKS


def test_every_annotation_with_a_risk_is_known() -> None:
    assert _RISKS.keys() <= TABLE.keys()


@pytest.mark.parametrize(
    ("level", "served"),
    [
        ("", {"low", "medium", "high"}),
        ("High", {"low", "medium", "high"}),
        ("medium", {"low", "medium"}),
        ("Low", {"low"}),
        ("Unknown", {"low"}),
    ],
)
def test_an_annotation_above_the_level_prevents_its_ingress(level: str, served: set[str]) -> None:
    objects = [
        ingress("low", ("/low", "Exact"), ssl_redirect="false"),
        ingress("medium", ("/medium", "Exact"), proxy_body_size="2m"),
        ingress("high", ("/high", "Exact"), auth_url="http://auth.example.org"),
        ingress("critical", ("/critical", "Exact"), configuration_snippet="gzip on;"),
    ]
    found = translated(*objects, config(**({"annotations_risk_level": level} if level else {})))
    got = {str(uri).strip("/*") for body in routes(found) for uri in body["uris"]}
    assert got & {"low", "medium", "high", "critical"} == served


@pytest.mark.parametrize(("words", "served"), [("", True), ("load_module, lua_", False), ("other,,", True)])
def test_a_word_of_the_blocklist_prevents_an_ingress(words: str, served: bool) -> None:
    item = ingress("web", ("/web", "Exact"), custom_http_errors="404", upstream_vhost="x.lua_.test")
    found = translated(item, config(annotation_value_word_blocklist=words))
    assert any("/web" in body["uris"] for body in routes(found)) == served
