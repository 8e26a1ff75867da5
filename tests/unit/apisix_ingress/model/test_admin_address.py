"""The version in a gateway's Server header."""

import pytest

from apisix_ingress.model.admin_address import version_of


@pytest.mark.parametrize(
    ("server", "want"),
    [
        ("APISIX/3.18.0", (3, 18)),
        ("APISIX/2.15.3", (2, 15)),
        ("APISIX/4.0", (4, 0)),
        ("proxy APISIX/3.2.1 (x)", (3, 2)),
        ("APISIX", None),
        ("APISIX/3", None),
        ("APISIX/x.y", None),
        (f"APISIX/{'9' * 5000}.1", None),
        ("nginx/1.25", None),
        ("", None),
    ],
)
def test_version_is_read_from_what_a_gateway_calls_itself(server: str, want: tuple[int, int] | None) -> None:
    assert version_of(server) == want
