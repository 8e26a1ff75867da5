"""Patterns that a gateway may fail to match: a path that is protected responds with 500, like nginx."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.host.bodies import SECRET, routes, status
from tests.unit.translation.nginx.native.written import served, written
from tests.unit.translation.nginx.objects import ingress, translated

NESTED = "/secure/((a|b)(/)?)*$"
USERS = {"kind": "Secret", "metadata": {"name": "users", "namespace": "shop"}, "data": {"auth": "dTp7U0hBfXg="}}
FAILING = [
    ["uri", "!", "~*", "^(?:[\\s\\S]*?(?:^/secure/((a|b)(/)?)*$)|)"],
    ["uri", "~*", "^/secure/"],
]


@pytest.mark.parametrize(
    ("given", "others"),
    [
        ({"auth_url": "http://auth.example/"}, ()),
        ({"auth_type": "basic", "auth_secret": "users"}, (USERS,)),
        ({"auth_type": "basic", "auth_secret": "missing"}, ()),
        ({"whitelist_source_range": "10.0.0.0/8"}, ()),
        ({"limit_rps": "1"}, ()),
        ({"limit_connections": "1"}, ()),
    ],
)
def test_a_protected_path_responds_with_500_before_a_shorter_path_is_tried(
    given: dict[str, Any], others: tuple[dict[str, Any], ...]
) -> None:
    web = ingress("web", ("/", "ImplementationSpecific"), age=1)

    got = routes(
        translated(ingress("secure", (NESTED, "ImplementationSpecific"), use_regex="true", **given), web, *others)
    )

    of_secure = [body for body in got if NESTED in str(body["vars"])]
    assert [body["vars"] for body in got if status(body) == 500] == [FAILING]
    assert of_secure[-1]["vars"] == FAILING
    assert of_secure == got[: len(of_secure)]
    assert len({body["priority"] for body in got}) == len(got)


@pytest.mark.parametrize(
    ("path", "given"),
    [(NESTED, {}), ("/secure(/|$)(.*)", {"limit_rps": "1"}), (NESTED, {"cors_max_age": "1"})],
)
def test_other_paths_have_no_further_route(path: str, given: dict[str, Any]) -> None:
    got = routes(translated(ingress("web", (path, "ImplementationSpecific"), use_regex="true", **given)))

    assert not any(status(body) == 500 for body in got)


def test_a_host_without_regular_expressions_has_no_further_route() -> None:
    got = routes(translated(ingress("web", ("/a*", "Prefix"), limit_rps="1")))

    assert not any(status(body) == 500 for body in got)


def test_manifests_with_one_rule_for_each_path_are_closed_as_well() -> None:
    given = ingress("web", ("/secure/(a+/?)*$", "ImplementationSpecific"), use_regex="true", limit_rps="1")

    found = written("httproute", given, SECRET)

    got = served(found).records
    assert [status(record.body) for record in got if "/secure/(a+" in str(record.body.get("vars"))] == [None, 500]
