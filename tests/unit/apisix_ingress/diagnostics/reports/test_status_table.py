"""The text form of `status`: a headline and tables that kubectl users can read at a glance."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apisix_ingress.diagnostics.reports.status_table import headline, status_lines

NOW = datetime(2026, 11, 22, 9, 0, 30, tzinfo=UTC)
OK = {"ok": 3, "failed": 0, "waiting": 0, "pending": 0}
COUNTS = {"wanted": 5, "there": 5, "differing": 0, "missing": 0, "extra": 0, "foreign": 0}
EAST: dict[str, Any] = {
    "name": "east",
    "url": "http://e",
    "reachable": True,
    "in_sync": True,
    "trouble": "",
    "version": "APISIX/3.18.0",
    "checked": "2026-11-22T09:00:15Z",
    "records": COUNTS,
}
WEST = {**EAST, "name": "west", "url": "http://w", "reachable": False, "in_sync": False, "trouble": "no response"}
ITEM: dict[str, Any] = {
    "object": {"kind": "ApisixRoute", "namespace": "shop", "name": "web"},
    "state": "failed",
    "reason": "ServiceNotFound",
    "message": "no Service",
    "since": "2026-11-22T08:55:30Z",
}
LEADER = {"lease": "apisix/leader", "state": "held", "holder": "one", "renewed_seconds_ago": 2.5, "problem": ""}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "healthy": True,
        "controller": "apisix-ingress",
        "leader": LEADER,
        "clusters": [EAST],
        "objects": {"ApisixRoute": OK},
        "items": [],
        "unread": [],
        **changes,
    }


def test_the_tables_name_clusters_kinds_and_objects_that_need_attention() -> None:
    differing = {**EAST, "in_sync": False, "records": {**COUNTS, "there": 3, "differing": 1, "missing": 1}}
    got = status_lines(
        document(
            healthy=False,
            clusters=[
                differing,
                {**WEST, "records": None, "version": "", "checked": "", "since": "2026-11-22T08:58:30Z"},
            ],
            objects={"ApisixRoute": {**OK, "failed": 1}, "Ingress": OK},
            items=[ITEM],
            unread=[{"kind": "Secret", "reason": "forbidden"}],
        ),
        NOW,
    )
    assert [line for line, _ in got] == [
        "1 object, 2 gateway clusters and 1 unreadable kind need attention",
        "controller apisix-ingress: one leads, renewed 2.5 s ago (lease apisix/leader)",
        "",
        "CLUSTER  STATE        RECORDS                       CHECKED   VERSION        ADMIN API",
        "east     incomplete   3/5 (1 differing, 1 missing)  15 s ago  APISIX/3.18.0  http://e",
        "west     unreachable  -                             -         -              http://w",
        "  no response (for 2 min)",
        "",
        "KIND         OK  FAILED  WAITING  PENDING",
        "ApisixRoute  3   1       0        0",
        "Ingress      3   0       0        0",
        "",
        "KIND         OBJECT    STATE   REASON           SINCE  MESSAGE",
        "ApisixRoute  shop/web  failed  ServiceNotFound  5 min  no Service",
        "cannot read Secret: forbidden",
    ]


def test_objects_with_the_same_message_are_listed_in_part() -> None:
    message = "Service shop/app does not exist; create it or correct the name"
    fields = ("spec.http[0].backends[0].serviceName: ", "spec.rules[0].http.paths[0].backend.service.name: ")
    items = [
        {**ITEM, "object": {**ITEM["object"], "name": f"web-{number}"}, "message": fields[number % 2] + message}
        for number in range(5)
    ]
    healthy = [{**ITEM, "object": {**ITEM["object"], "name": name}, "state": "ok"} for name in "abcde"]
    lines = [
        line for line, _ in status_lines(document(healthy=False, items=[*items[:2], ITEM, *items[2:], *healthy]), NOW)
    ]
    assert [line.split()[1] for line in lines if line.startswith("ApisixRoute  shop/")] == [
        "shop/web-0",
        "shop/web-1",
        "shop/web-2",
        "shop/web",
        *(f"shop/{name}" for name in "abcde"),
    ]
    assert "  and 2 more with the same message; list them with -o json" in lines


def test_rows_that_need_attention_are_coloured() -> None:
    got = dict(status_lines(document(healthy=False, objects={"ApisixRoute": {**OK, "failed": 1}}, items=[ITEM]), NOW))
    assert got["1 object needs attention"] == "red"
    assert got["ApisixRoute  shop/web  failed  ServiceNotFound  5 min  no Service"] == "red"
    assert got["east     in sync  5/5      15 s ago  APISIX/3.18.0  http://e"] == ""


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, "3 objects in sync with 1 gateway cluster"),
        ({"healthy": False}, "there is no leader: nothing is written to the gateways"),
        ({"healthy": False, "clusters": [EAST, WEST]}, "1 gateway cluster needs attention"),
        ({"healthy": False, "objects": {"Ingress": {**OK, "pending": 2}}}, "2 objects need attention"),
        (
            {"healthy": False, "clusters": [EAST, WEST], "objects": {"Ingress": {**OK, "failed": 1, "waiting": 1}}},
            "1 object and 1 gateway cluster need attention; 1 object waits for a gateway that does not respond",
        ),
    ],
)
def test_the_headline_is_the_whole_status_in_a_sentence(changes: dict[str, Any], want: str) -> None:
    assert headline(document(**changes)) == want


@pytest.mark.parametrize(
    ("lease", "want"),
    [
        ("", "controller apisix-ingress: one leads"),
        ("apisix/leader", "controller apisix-ingress: one leads (lease apisix/leader)"),
    ],
)
def test_the_response_of_a_running_controller_may_lack_the_lease_and_the_age(lease: str, want: str) -> None:
    leader = {**LEADER, "lease": lease, "renewed_seconds_ago": None}
    assert list(status_lines(document(leader=leader), NOW))[1][0] == want


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("stale", "no leader: one has not renewed for 2.5 s"),
        ("free", "no leader: the last one released the lease"),
        ("absent", "there has never been a leader"),
        ("off", "leader election is disabled"),
        ("unreadable", "the leader is unknown"),
    ],
)
def test_the_second_line_names_the_leader(state: str, words: str) -> None:
    assert words in list(status_lines(document(leader={**LEADER, "state": state}), NOW))[1][0]


def test_an_empty_status_ends_with_what_is_missing() -> None:
    hint = {"text": "There is no Ingress yet.", "command": "kubectl create ingress"}
    got = [line for line, _ in status_lines(document(objects={}, hint=hint), NOW)]
    assert got[-3:] == ["", "There is no Ingress yet.", "Next: kubectl create ingress"]
    got = [line for line, _ in status_lines(document(objects={}, hint={**hint, "command": ""}), NOW)]
    assert got[-1] == "There is no Ingress yet."
