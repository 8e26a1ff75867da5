"""Problems of an object: enough to correct it, and no more than fits into a log and a status."""

from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS
from translation.core.context import MOST_REPORTED, Context


def scope() -> Context:
    return Context("ApisixRoute", "default", World(()).view(), OPTIONS)


def test_only_the_first_of_very_many_problems_of_one_severity_are_reported() -> None:
    found = scope()
    for number in range(MOST_REPORTED + 5):
        found.warn("W", f"w[{number}]", "m")
    found.error("E", "e", "m")
    assert [problem.path for problem in found.problems] == [f"w[{number}]" for number in range(MOST_REPORTED)] + ["e"]


def test_a_long_text_is_shortened_in_the_middle() -> None:
    found = scope()
    found.error("E", "p" * 65536, "begin" + "m" * (1 << 20) + "end")
    (problem,) = found.problems
    assert (len(problem.path), len(problem.message)) == (303, 1003)
    assert problem.message.startswith("begin")
    assert problem.message.endswith("end")
    found.error("E", "p" * 300, "m" * 1000)
    assert (found.problems[1].path, found.problems[1].message) == ("p" * 300, "m" * 1000)
