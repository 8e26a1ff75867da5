"""The permissions that the controller needs."""

import pytest

from apisix_ingress.diagnostics.doctor.permissions import Right, needed_rights
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.settings import Settings
from apisix_ingress.wiring.options import translation_options
from providers.core.registry import resources

READ = resources(translation_options(Settings()))


@pytest.mark.parametrize("row", [row for row in READ if row.status not in ("", "addresses")], ids=lambda row: row.kind)
def test_a_kind_whose_status_is_written_is_read_and_patched(row: Resource) -> None:
    want = {Right(row.group, row.plural, "get"), Right(row.group, f"{row.plural}/status", "patch")}
    assert want <= needed_rights(Settings(), "apisix-ingress")
