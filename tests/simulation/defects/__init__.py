"""Plausible defects, and whether stories find them: the test of the simulation itself.

Every defect is a small change of one function of the product; the simulation is unchanged.
"""

from tests.simulation.defects import leadership as leadership
from tests.simulation.defects import objects as objects
from tests.simulation.defects import records as records
from tests.simulation.defects.planting import DEFECTS as DEFECTS
