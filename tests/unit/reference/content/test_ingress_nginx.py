"""The pages of ingress-nginx: which values of an annotation they list."""

import pytest

from reference.content import ingress_nginx
from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.rows import Row

BY_VALUE = [row for row in TABLE.values() if callable(row.verdict)]


@pytest.mark.parametrize("row", BY_VALUE, ids=lambda row: row.name)
def test_a_verdict_by_value_names_a_value_that_is_not_exact(row: Row) -> None:
    listed = list(ingress_nginx._verdicts(row))
    assert [line for line in listed[:-1] if not line.partition(": ")[2].startswith("exact")]


def test_every_sample_belongs_to_an_annotation_with_a_verdict_by_value() -> None:
    assert set(ingress_nginx._SAMPLES) <= {row.name for row in BY_VALUE}
