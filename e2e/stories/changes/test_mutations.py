"""Recorded changes, one state after another, on a real API server: every gateway record and every condition.

The cases are those of `tests/golden/oracle` that have several states; cases with the same settings change together.
"""

from typing import Any

from e2e.cluster.client import KubeClient
from e2e.conftest import StartController
from e2e.devgateway.process import DevGateway
from e2e.golden.cases import Place, expected_conditions, placed, recorded_cases, wait_conditions, wait_stored, wanted
from e2e.golden.moved import MovedCase
from tests.golden.recorded import recordings

METADATA = {"plugin_metadata": "ingress-apisix/plugin-metadata"}


def changing(options: dict[str, Any]) -> dict[str, MovedCase]:
    return {name: case for name, case in recorded_cases(options).items() if case.states > 1}


# If one controller serves two groups, the settings of the second have no effect on the first.
TOGETHER = {**changing({}), **changing(METADATA)}
BY_CLASS = changing({"ingress_class": "apisix"})
BY_NAMESPACE = changing({"namespace_selector": "watch=yes"})


def play(place: Place, gateway: DevGateway) -> None:
    """Apply every state in order; after each one, check the gateway and the conditions."""
    with DevGateway() as scratch:
        for number in range(max(case.states for case in place.cases.values())):
            place.go_to(number)
            want, refused = wanted(place, number, scratch)
            assert refused == {}
            wait_stored(gateway, want, f"state {number}")
            wait_conditions(place, expected_conditions(place, number))


def test_every_recorded_change_is_played() -> None:
    several = {name for name, recording in recordings().items() if len(recording.states) > 1}
    assert {*TOGETHER, *BY_CLASS, *BY_NAMESPACE} == several


def test_changes_leave_the_recorded_or_the_correct_records(
    cluster_api: KubeClient, start_controller: StartController
) -> None:
    with DevGateway() as gateway, placed(cluster_api, TOGETHER) as place:
        own = start_controller({"default": gateway}, place.selector, kubernetes=METADATA)
        play(place, gateway)
        assert own.stop() == 0


def test_an_object_that_leaves_the_class_is_withdrawn(
    cluster_api: KubeClient, start_controller: StartController
) -> None:
    with DevGateway() as gateway, placed(cluster_api, BY_CLASS) as place:
        own = start_controller({"default": gateway}, place.selector, kubernetes={"ingress_class": "apisix"})
        play(place, gateway)
        assert own.stop() == 0


def test_a_namespace_that_gets_the_label_later_is_served(
    cluster_api: KubeClient, start_controller: StartController
) -> None:
    with DevGateway() as gateway, placed(cluster_api, BY_NAMESPACE) as place:
        selector = {"namespace_selector": f"{place.selector},watch=yes"}
        own = start_controller({"default": gateway}, place.selector, kubernetes=selector)
        play(place, gateway)
        assert own.stop() == 0
