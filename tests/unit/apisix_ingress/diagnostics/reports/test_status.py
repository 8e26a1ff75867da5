"""How objects, leases and clocks are read for `status`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.leader import lease_of
from apisix_ingress.diagnostics.doctor.clock_skew import skew_seconds
from apisix_ingress.diagnostics.empty_state import NO_HINT, Hint
from apisix_ingress.diagnostics.reports.status import Filter, Wellness, compose, computed_wellness, stored_wellness
from apisix_ingress.model.condition import AWAY, aborted, synced
from apisix_ingress.model.states import ObjectStatus
from tests.factories import make_custom, make_key

NOW = datetime(2026, 1, 1, 12, 0, 30, 500_000, tzinfo=UTC)
CONDITION = {"type": "ResourcesAvailable", "status": "True", "reason": "ResourcesSynced", "message": "fine"}


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        ({**CONDITION, "observedGeneration": 1}, "ok"),
        ({**CONDITION, "observedGeneration": 1, "status": "False"}, "failed"),
        ({**CONDITION, "observedGeneration": 1, "status": "False", "message": f"{AWAY}no response"}, "waiting"),
        ({**CONDITION, "observedGeneration": 0}, "pending"),
        (CONDITION, "pending"),
        ({**CONDITION, "observedGeneration": 1, "type": "Other"}, "pending"),
    ],
)
def test_a_condition_applies_to_the_current_generation_only(condition: Any, state: str) -> None:
    assert stored_wellness(make_custom(status={"conditions": [condition]})).state == state


def test_a_computed_condition_is_read_in_the_same_way() -> None:
    assert computed_wellness(None).state == "pending"
    assert computed_wellness(synced(1)).state == "ok"
    assert computed_wellness(aborted(1, "no response", away=True)).state == "waiting"
    assert computed_wellness(aborted(1, "no Service")) == Wellness("failed", "ResourceSyncAborted", "no Service")


def test_a_filter_that_matches_nothing_is_the_hint_unless_nothing_is_served_at_all() -> None:
    def hint_of(only: Filter, *states: ObjectStatus, hint: Hint = NO_HINT) -> str:
        found = {make_key(state): Wellness(state) for state in states}
        got = compose(found, [], only, controller="c", leader={}, is_led=True, hint=hint)["hint"]
        return got["text"] if got else ""

    shop = Filter(namespace="shop")
    assert [hint_of(Filter()), hint_of(Filter(), "ok"), hint_of(shop, "ok")] == ["", "", ""]
    assert "omit --namespace and --kind" in hint_of(shop)
    assert hint_of(shop, hint=Hint("nothing there")) == "nothing there"


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
def test_a_clock_is_compared_with_the_date_header(date: str, want: float | None) -> None:
    assert skew_seconds(date, NOW) == want
