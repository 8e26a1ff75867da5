"""The format of small values: keys, problems, conditions, JSON."""

import orjson
import pytest

from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.json import canonical
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem


def test_keys_are_rendered_as_users_write_them() -> None:
    got = [str(ObjectKey("ApisixRoute", "default", "web")), str(ObjectKey("Namespace", "", "default"))]
    assert got == ["ApisixRoute default/web", "Namespace default"]
    assert str(RecordKey("routes", "46eb0e41")) == "routes/46eb0e41"


def test_record_kinds_are_listed_once() -> None:
    assert len(set(RECORD_KINDS)) == len(RECORD_KINDS) == 11


def test_problem_is_rendered_with_its_path() -> None:
    assert str(Problem("Bad", "it is bad", "spec.http[0]")) == "spec.http[0]: it is bad"
    assert str(Problem("Bad", "it is bad")) == "it is bad"


def test_conditions_are_those_of_1_8() -> None:
    assert synced(3) == Condition("True", "ResourcesSynced", "Sync Successfully", 3, "ResourcesAvailable")
    assert aborted(4, "why") == Condition("False", "ResourceSyncAborted", "why", 4, "ResourcesAvailable")


def test_canonical_json_has_sorted_keys_at_every_level() -> None:
    assert canonical({"b": [{"d": 1, "c": 2}], "a": "ü"}) == '{"a":"ü","b":[{"c":2,"d":1}]}'.encode()


def test_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(orjson.JSONEncodeError):
        canonical({"a": object()})
