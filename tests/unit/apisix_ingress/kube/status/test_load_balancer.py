"""The owner of an Ingress' addresses, by its managedFields."""

from typing import Any

import pytest

from apisix_ingress.kube.status.load_balancer import is_set_by

OURS, THEIRS = "apisix-ingress", "nginx"
ADDRESSES: dict[str, Any] = {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
OTHERS: dict[str, Any] = {"f:status": {"f:conditions": {}}, "f:metadata": {"f:annotations": {}}}


def made(*entries: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"metadata": {"managedFields": [{"manager": name, "fieldsV1": fields} for name, fields in entries]}}


def test_addresses_are_owned_if_only_this_controller_wrote_them() -> None:
    assert is_set_by(OURS, made((THEIRS, OTHERS), (OURS, ADDRESSES)))


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"metadata": {"managedFields": None}},
        made((OURS, OTHERS)),
        made((THEIRS, ADDRESSES), (OURS, OTHERS)),
        made((THEIRS, ADDRESSES), (OURS, ADDRESSES)),
    ],
    ids=["nothing", "null", "other-fields", "theirs", "both"],
)
def test_addresses_written_by_other_clients_or_unknown_are_not_owned(item: dict[str, Any]) -> None:
    assert not is_set_by(OURS, item)
