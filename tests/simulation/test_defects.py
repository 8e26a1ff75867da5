"""Planted defects fit the product: otherwise stories find a crash instead of the defect."""

import pytest

from tests.simulation.defects import DEFECTS


@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_replaces_functions_with_the_same_parameters(name: str) -> None:
    with DEFECTS[name]():
        pass
