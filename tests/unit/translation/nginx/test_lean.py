"""`ingress_nginx.fidelity: lean`: other defaults of a few keys of the ConfigMap, and no other difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson
from e2e.nginx.corpus import cases
from e2e.nginx.world import Certificates, Cluster
from tests.unit.translation.nginx.host.bodies import config, routes
from tests.unit.translation.nginx.objects import COMPACT, ingress, translated
from translation.nginx.tables.config_map import DEFAULTS, LEAN

OPTIONS = replace(COMPACT, nginx=replace(COMPACT.nginx, lean=True)) if COMPACT.nginx else COMPACT
UNBUFFERED = "unbuffered"
"""The value of the function for the keys in `LEAN`."""


def function_of(*objects: dict[str, Any]) -> FrozenJson:
    body = next(each for each in routes(translated(*objects, options=OPTIONS)) if "upstream_id" in each)
    found: FrozenJson = body["plugins"]["client-control"]["ingress_nginx"]
    return found


def test_responses_are_buffered_unless_an_object_says_otherwise() -> None:
    assert UNBUFFERED not in function_of(ingress("web", ("/", "Prefix")))
    assert function_of(ingress("web", ("/", "Prefix"), proxy_buffering="off"))[UNBUFFERED] == "known"
    assert function_of(ingress("web", ("/", "Prefix")), config(proxy_buffering="off"))[UNBUFFERED] == "known"


@pytest.mark.parametrize("key", LEAN)
def test_a_lean_default_is_another_value_of_a_supported_key_and_no_protection(key: str) -> None:
    assert LEAN[key].value != DEFAULTS[key]
    assert (LEAN[key].verdict.level, LEAN[key].verdict.protects) == ("approximate", False)


def test_the_recorded_cases_differ_only_in_what_lean_gives_up() -> None:
    certificates, differing = Certificates(), 0
    for case in cases():
        addresses = dict.fromkeys(case.backends, "10.244.0.1")
        services = dict.fromkeys(case.about.get("services", {}), "10.244.0.2")
        exact, lean = (Cluster(case, certificates, addresses, services, lean=each).records() for each in (False, True))
        assert {key: without(body) for key, body in exact.items()} == {key: without(body) for key, body in lean.items()}
        differing += exact != lean
    assert differing > 100


def without(body: FrozenJson) -> FrozenJson:
    """Return a record without the value of the function for unbuffered responses."""
    plugins = dict(body.get("plugins", {}))
    function = plugins.get("client-control", {}).get("ingress_nginx")
    if function:
        rest = {name: value for name, value in function.items() if name != UNBUFFERED}
        plugins["client-control"] = {**plugins["client-control"], "ingress_nginx": rest}
    return {**body, "plugins": plugins}
