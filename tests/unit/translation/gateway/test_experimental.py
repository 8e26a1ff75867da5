"""The experimental fields retry and sessionPersistence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from tests.unit.translation.gateway.objects import CLASS, gateway, of_parents, route, rule
from tests.unit.translation.objects import OPTIONS, service
from tests.unit.translation.settling import bodies, settle

ON = replace(OPTIONS, gateway_experimental=True)
ACCEPTED = {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}


def served(*rules: JsonObject, kind: str = "HTTPRoute", on: bool = True) -> Any:
    return settle(CLASS, gateway(), service(), route(*rules, kind=kind), options=ON if on else OPTIONS)


def records(found: Any, kind: str = "routes") -> list[JsonObject]:
    return [dict(body) for path, body in bodies(found).items() if path.startswith(f"{kind}/")]


@pytest.mark.parametrize("field", [{"retry": {"attempts": 2}}, {"sessionPersistence": {}}])
def test_experimental_fields_are_refused_without_the_setting(field: JsonObject) -> None:
    assert of_parents(served(rule(**field), on=False))[0]["Accepted"] == "!UnsupportedValue"
    assert of_parents(served(rule(**field)))[0] == ACCEPTED


@pytest.mark.parametrize(
    ("field", "want"),
    [
        ({"retry": {"attempts": 2}}, 2),
        ({"retry": {"attempts": 2}, "timeouts": {"backendRequest": "1s"}}, 2),
        ({"timeouts": {"backendRequest": "1s"}}, 0),
        ({"retry": {}}, None),
    ],
)
def test_attempts_are_retries_of_the_upstream(field: JsonObject, want: int | None) -> None:
    (upstream,) = records(served(rule(**field)), "upstreams")
    assert upstream.get("retries") == want


@pytest.mark.parametrize(
    "field",
    [
        {"retry": {"codes": [503]}},
        {"retry": {"backoff": "1s"}},
        {"retry": {}, "timeouts": {"request": "1s"}},
        {"sessionPersistence": {"sessionName": "a b"}},
        {"sessionPersistence": {"idleTimeout": "1s"}},
        {"sessionPersistence": {"absoluteTimeout": "1h"}},
        {"sessionPersistence": {}, "backendRefs": [{"name": "web", "port": 80}, {"name": "web", "port": 80}]},
    ],
)
def test_what_gateways_cannot_do_is_refused(field: JsonObject) -> None:
    assert of_parents(served(rule(**field)))[0]["Accepted"] == "!UnsupportedValue"


def test_a_session_is_a_hash_of_its_cookie() -> None:
    cookie = {"lifetimeType": "Permanent"}
    session = {"sessionName": "who", "absoluteTimeout": "1h", "cookieConfig": cookie}
    found = served(rule(sessionPersistence=session))
    known, new = sorted(records(found), key=lambda body: str(body["name"]).endswith("_new"))
    assert (known["vars"][-1], new["vars"][-1]) == (["cookie_who", "~~", "."], ["cookie_who", "!", "~~", "."])
    assert known["priority"] == new["priority"]
    assert "plugins" not in known
    want = "Set-Cookie: who=$request_id; Path=/; HttpOnly; Max-Age=3600"
    assert new["plugins"] == {"response-rewrite": {"headers": {"add": [want]}}}
    balancers = {body["id"]: (body["hash_on"], body["key"]) for body in records(found, "upstreams")}
    assert balancers[known["upstream_id"]] == ("cookie", "who")
    assert balancers[new["upstream_id"]] == ("vars_combinations", "$request_id")


def test_a_session_by_a_header() -> None:
    found = served(rule(sessionPersistence={"type": "Header", "sessionName": "X-Who"}), kind="GRPCRoute")
    known, new = sorted(records(found), key=lambda body: str(body["name"]).endswith("_new"))
    assert known["vars"][-1] == ["http_x_who", "~~", "."]
    assert new["plugins"] == {"response-rewrite": {"headers": {"add": ["X-Who: $request_id"]}}}
    assert {body["scheme"] for body in records(found, "upstreams")} == {"grpc"}


def test_changes_of_the_answer_stay_beside_a_session() -> None:
    change = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [{"name": "A", "value": "1"}]}}
    found = served(rule(change, sessionPersistence={}))
    added = [body["plugins"]["response-rewrite"]["headers"]["add"] for body in records(found)]
    assert sorted(map(len, added)) == [1, 2]
