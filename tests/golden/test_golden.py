"""Every golden case: as written, with its objects in another order, and with the other kind of endpoints."""

import random
import zlib
from collections.abc import Sequence

import pytest

from apisix_ingress.model.json import JsonObject
from tests.golden.cases import Case, all_cases, document, normal, write
from tests.golden.driver import Driver
from translation.core.options import Options

CASES = all_cases()

in_each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def _outcomes(case: Case, options: Options, rng: random.Random | None = None) -> list[JsonObject]:
    driver = Driver(options)
    states: list[JsonObject] = []
    for state in case.states:
        objects: Sequence[JsonObject] = case.objects(state)
        if rng:
            objects = rng.sample(objects, len(objects))
        states.append(document(driver.apply(objects)))
    return states


@in_each_case
def test_objects_become_the_expected_records(case: Case, update_golden: bool) -> None:
    got = _outcomes(case, case.options())
    if update_golden:
        for state, outcome in zip(case.states, got, strict=True):
            write(case.want_path(state), outcome)
    assert [normal(outcome) for outcome in got] == [case.want(state) for state in case.states]


@in_each_case
def test_the_order_of_objects_does_not_matter(case: Case) -> None:
    rng = random.Random(zlib.crc32(case.name.encode()))
    got = _outcomes(case, case.options(), rng)
    assert [normal(outcome) for outcome in got] == [case.want(state) for state in case.states]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "/endpoint-slice-" not in case.name], ids=lambda case: case.name
)
def test_slices_and_endpoints_give_the_same_nodes(case: Case) -> None:
    want = [case.want(state) for state in case.states]
    for source in ("endpoints", "endpointslices"):
        got = _outcomes(case, case.options(endpoint_source=source))
        assert [normal(outcome) for outcome in got] == want
