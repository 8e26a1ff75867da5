"""Long values of annotations: the work for each grows with its length."""

from __future__ import annotations

import pytest

from reference.content.annotations import GROUPS, Annotation
from tests.steps import pumped, steps
from tests.unit.translation.objects import OPTIONS, world
from translation.annotations import read_annotations
from translation.core.context import Context

_EVERY = {each.name: each for group in GROUPS.values() for each in group}


def _work(annotation: Annotation, value: str) -> int:
    given = {**annotation.beside, annotation.name: value}
    prefixed = {f"k8s.apisix.apache.org/{name}": text for name, text in given.items()}
    scope = Context("Ingress", "default", world().view(), OPTIONS)
    return steps(lambda: read_annotations(scope, prefixed))


@pytest.mark.parametrize("name", _EVERY)
def test_ten_times_as_long_a_value_takes_at_most_ten_times_the_work(name: str) -> None:
    annotation = _EVERY[name]
    for short, long in zip(pumped(annotation.example, 20), pumped(annotation.example, 200), strict=True):
        assert _work(annotation, long) <= 11 * _work(annotation, short) + 1000, long[:80]
