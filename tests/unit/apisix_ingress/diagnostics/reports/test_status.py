"""How objects, leases and clocks are read, and how the document of `status` reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.leader import lease_of
from apisix_ingress.diagnostics.doctor.clock_skew import skew_seconds
from apisix_ingress.diagnostics.reports.status import Wellness, computed_wellness, status_lines, stored_wellness
from apisix_ingress.model.condition import AWAY, aborted, synced
from tests.factories import make_custom

NOW = datetime(2026, 1, 1, 12, 0, 30, 500_000, tzinfo=UTC)
CONDITION = {"type": "ResourcesAvailable", "status": "True", "reason": "ResourcesSynced", "message": "fine"}


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        ({**CONDITION, "observedGeneration": 1}, "ok"),
        ({**CONDITION, "observedGeneration": 1, "status": "False"}, "failed"),
        ({**CONDITION, "observedGeneration": 1, "status": "False", "message": f"{AWAY}no answer"}, "waiting"),
        ({**CONDITION, "observedGeneration": 0}, "pending"),
        (CONDITION, "pending"),
        ({**CONDITION, "observedGeneration": 1, "type": "Other"}, "pending"),
    ],
)
def test_a_condition_counts_for_the_present_generation_only(condition: Any, state: str) -> None:
    assert stored_wellness(make_custom(status={"conditions": [condition]})).state == state


def test_a_computed_condition_is_read_in_the_same_way() -> None:
    assert computed_wellness(None).state == "pending"
    assert computed_wellness(synced(1)).state == "ok"
    assert computed_wellness(aborted(1, "no answer", away=True)).state == "waiting"
    assert computed_wellness(aborted(1, "no Service")) == Wellness("failed", "ResourceSyncAborted", "no Service")


def lease(holder: str, seconds: float, duration: Any = 15) -> dict[str, Any]:
    moment = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    spec = {"holderIdentity": holder, "renewTime": moment, "leaseDurationSeconds": duration}
    return {"metadata": {"name": "leader", "namespace": "apisix"}, "spec": spec}


@pytest.mark.parametrize(
    ("raw", "state", "age"),
    [
        (lease("one", 3), "held", 3.0),
        (lease("one", 15), "held", 15.0),
        (lease("one", 16), "stale", 16.0),
        (lease("one", 3, None), "stale", 3.0),
        (lease("", 3), "free", 3.0),
        ({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "one", "renewTime": "soon"}}, "stale", None),
        ({}, "free", None),
    ],
)
def test_a_lease_is_held_as_long_as_it_says(raw: Any, state: str, age: float | None) -> None:
    got = lease_of(raw, NOW)
    assert (got.state, got.age) == (state, age)


@pytest.mark.parametrize(
    ("date", "want"),
    [
        ("Thu, 01 Jan 2026 12:00:30 GMT", 0.0),
        ("Thu, 01 Jan 2026 12:01:00 GMT", 30.0),
        ("Thu, 01 Jan 2026 12:00:00 GMT", -30.0),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 0.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_clock_is_compared_by_the_date_of_an_answer(date: str, want: float | None) -> None:
    assert skew_seconds(date, NOW) == want


def document(**leader: Any) -> dict[str, Any]:
    counts = {"wanted": 5, "there": 3, "differing": 1, "missing": 1, "extra": 0, "foreign": 2}
    there = {"name": "east", "url": "http://e", "reachable": True, "version": "APISIX/3.18.0", "records": counts}
    away = {"name": "west", "url": "http://w", "reachable": False, "trouble": "no answer", "records": None}
    seen = {"lease": "apisix/leader", "state": "held", "holder": "one", "renewed_seconds_ago": 2.5, "problem": ""}
    return {
        "healthy": False,
        "controller": "apisix-ingress",
        "leader": seen | leader,
        "clusters": [there, away],
        "objects": {
            "ApisixRoute": {"ok": 3, "failed": 1, "waiting": 1, "pending": 0},
            "Ingress": {"ok": 0, "failed": 0, "waiting": 0, "pending": 0},
        },
        "not_ok": [{"object": "ApisixRoute shop/web", "state": "failed", "reason": "No", "message": "no Service"}],
        "unread": [{"kind": "Secret", "reason": "forbidden"}],
    }


def test_the_lines_name_clusters_kinds_and_whoever_is_not_well() -> None:
    assert list(status_lines(document())) == [
        "controller apisix-ingress: one leads, renewed 2.5 s ago (lease apisix/leader)",
        "cluster east at http://e (APISIX/3.18.0): 3 of 5 records in sync; 1 differing, 1 missing, 2 foreign",
        "cluster west at http://w: can't be read: no answer",
        "ApisixRoute: 3 ok, 1 failed, 1 waiting",
        "Ingress: 0 ok",
        "cannot read Secret: forbidden",
        "failed: ApisixRoute shop/web: No: no Service",
        "degraded",
    ]


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
def test_the_first_line_says_who_leads(state: str, words: str) -> None:
    assert words in next(status_lines(document(state=state)))
