"""The golden cases compared with the recording of controller 1.8.4: all are covered, and every difference is listed."""

import pytest

from tests.golden.cases import Case, all_cases
from tests.golden.recorded import differences, listed, recordings

CASES = {case.path.name: case for case in all_cases() if case.path.parent.name == "oracle"}
DIFFER: dict[str, dict[int, list[str]]] = listed()["differ"]
ALIKE: dict[str, str] = listed()["alike"]


def test_every_recording_is_a_golden_case_with_all_its_states() -> None:
    want = {name: len(recording.states) for name, recording in recordings().items()}
    assert {name: len(case.states) for name, case in CASES.items()} == want


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_differences_from_1_8_are_listed(case: Case) -> None:
    want = {str(state): found for state, found in DIFFER.get(case.path.name, {}).items()}
    assert differences(case) == want


def test_every_case_on_the_lists_exists_and_reports_the_reason() -> None:
    listed = {*DIFFER, *ALIKE}
    assert listed <= CASES.keys()
    assert sorted(name for name in listed if not (CASES[name].path / "NOTE").exists()) == []


def test_every_recorded_defect_is_on_one_list() -> None:
    defects = {name for name, recording in recordings().items() if recording.defect}
    assert defects - DIFFER.keys() == set(ALIKE)
