"""Parsed Ingresses of ingress-nginx: bounded work however many hosts and Services read them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.objects import ingress, translated
from translation.ingress_spec import IngressSpec


def test_an_ingress_with_many_hosts_is_parsed_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    validate = IngressSpec.model_validate

    def counted(spec: Any) -> IngressSpec:
        nonlocal seen
        seen += 1
        return validate(spec)

    monkeypatch.setattr(IngressSpec, "model_validate", counted)
    item = ingress("many", ("/", "Prefix"))
    [rule] = item["spec"]["rules"]
    item["spec"]["rules"] = [rule | {"host": f"{number}.test"} for number in range(20)]

    got = translated(item)

    assert len({body.body["hosts"][0] for body in got.records if body.key.kind == "routes"}) == 20
    assert seen <= 2  # once for its hosts, once for its own problems
