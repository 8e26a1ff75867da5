"""server-alias with a regular expression: routes for names that are not known in advance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.native.written import served, written
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from translation.core.options import Options

ALIAS = r"~^r[0-9]+\.shop\.test$,plain.test,~\D.test"
CONDITION = ["host", "~*", r"(?:^r[0-9]+\.shop\.test$)|(?:\D.test)"]
SECRET = {"kind": "Secret", "metadata": {"name": "ca", "namespace": "shop"}, "stringData": {"ca.crt": "BEGIN"}}


def of_pattern(*objects: dict[str, Any], options: Options = OPTIONS) -> list[FrozenJson]:
    """Return the routes for names that match a pattern."""
    found = [record.body for record in translated(*objects, options=options).records if record.key.kind == "routes"]
    return [body for body in found if CONDITION in body.get("vars", ())]


def test_names_that_match_have_the_routes_of_the_host_and_precede_every_host() -> None:
    every = ingress("every", ("/", "Prefix"), host="", age=1)
    web = ingress("web", ("/", "Prefix"), server_alias=ALIAS, whitelist_source_range="192.0.2.0/24")

    got = of_pattern(web, every)

    named = [record.body for record in translated(web, every).records if record.key.kind == "routes"]
    others = [body["priority"] for body in named if body not in got]
    assert got
    assert not any("hosts" in body for body in got)
    assert min(body["priority"] for body in got) > max(others)
    abort = {body["plugins"]["fault-injection"]["abort"]["http_status"] for body in got if not body.get("upstream_id")}
    assert 403 in abort


def test_names_that_match_are_not_redirected_to_the_certificate_of_the_host() -> None:
    web = ingress("web", ("/", "Prefix"), server_alias=ALIAS)
    web["spec"]["tls"] = [{"hosts": ["shop.test"], "secretName": "absent"}]

    assert not any("redirect" in body["plugins"] for body in of_pattern(web))


@pytest.mark.parametrize("host_ownership", ["namespace", "assigned"])
def test_a_pattern_takes_no_host_that_could_belong_to_another_namespace(
    host_ownership: Literal["namespace", "assigned"],
) -> None:
    options = replace(OPTIONS, host_ownership=host_ownership)
    web = ingress("web", ("/", "Prefix"), server_alias=ALIAS)

    assert not of_pattern(web, options=options)
    problems = [problem.message for _, problem in translated(web, options=options).problems]
    assert any("host_ownership" in message and "regular expression" in message for message in problems)


def test_a_host_with_client_certificates_has_no_names_by_pattern() -> None:
    web = ingress("web", ("/", "Prefix"), server_alias=ALIAS, auth_tls_secret="shop/ca")

    assert not of_pattern(SECRET, web)


def test_a_pattern_that_is_not_valid_is_ignored() -> None:
    got = translated(ingress("web", ("/", "Prefix"), server_alias="~(")).records

    assert all("hosts" in record.body for record in got if record.key.kind == "routes")


def test_manifests_have_no_routes_for_names_by_pattern() -> None:
    got = served(written("apisixroute", ingress("web", ("/", "Prefix"), server_alias=ALIAS)))

    hosts = {tuple(record.body["hosts"]) for record in got.records if record.key.kind == "routes"}
    assert hosts == {("shop.test", "plain.test")}
