"""Ingresses of ingress-nginx: warnings instead of the denials of its own webhook."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.webhook.review import Verdict
from tests.unit.apisix_ingress.webhook.worlds import ask, make_checks
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE, ingress
from translation.core.options import Options

RECORDED = [
    json.loads(line)
    for line in Path(__file__).with_name("nginx_admission.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Ingresses that the webhook of ingress-nginx 1.15.1 denied, each with the others of its case."""


def verdict(item: dict[str, Any], *others: dict[str, Any], options: Options = OPTIONS) -> Verdict:
    """Return the response to the creation of an Ingress alongside other objects."""
    known = [RESOURCES[each["kind"]].decode(each) for each in (CLASS, SERVICE, *others)]
    return ask(make_checks(*known, options=options), item)


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["case"] for each in RECORDED])
def test_what_ingress_nginx_denies_gets_a_warning(recorded: dict[str, Any]) -> None:
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": "ingress-nginx"},
        "data": {name: str(value) for name, value in recorded["config"].items()},
    }
    assert OPTIONS.nginx is not None
    options = replace(OPTIONS, nginx=replace(OPTIONS.nginx, disable_catch_all=recorded["catch_all"]))
    for age, item in enumerate(recorded["ingresses"]):
        item["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{age:02}Z"
    for item in recorded["ingresses"]:
        if item["metadata"]["name"] in recorded["refused"]:
            others = [each for each in recorded["ingresses"] if each is not item]
            got = verdict(item, config, *others, options=options)
            assert (got.denials, bool(got.warnings)) == ((), True), item["metadata"]["name"]


def test_a_valid_ingress_gets_no_warning() -> None:
    assert verdict(ingress("web", ("/", "Prefix"), proxy_body_size="8m")) == Verdict()


def test_a_path_that_an_older_ingress_has_is_named() -> None:
    got = verdict(ingress("late", ("/", "Prefix"), age=5), ingress("web", ("/", "Prefix")))

    assert got.warnings == ("spec.rules: shop.test/ is served by Ingress shop/web, which is older; remove one of them",)


def test_a_protection_that_is_not_served_is_named() -> None:
    got = verdict(ingress("web", ("/", "Prefix"), enable_modsecurity="true"))

    assert any("enable-modsecurity" in text and "503" in text for text in got.warnings)


def test_a_misspelt_annotation_is_named() -> None:
    got = verdict(ingress("web", ("/", "Prefix"), proxy_body_sise="8m"))

    assert any("proxy-body-sise]: unknown annotation" in text for text in got.warnings)


def test_an_ingress_of_another_class_gets_no_warning() -> None:
    item = ingress("web", ("/", "Prefix"), enable_modsecurity="true")
    item["spec"]["ingressClassName"] = "other"

    assert verdict(item) == Verdict()
