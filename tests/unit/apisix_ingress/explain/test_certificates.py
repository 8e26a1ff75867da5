"""The certificate for a server name, and why clients reject it."""

import ssl
from datetime import UTC, datetime

from apisix_ingress.explain.certificates import invalidity
from tests.unit.translation.objects import pem

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_certificate_of_a_gateway_that_cannot_be_read_has_no_finding() -> None:
    content = ssl.PEM_cert_to_DER_cert(pem(1).certificate)
    changed = content.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09")

    assert invalidity({"cert": ssl.DER_cert_to_PEM_cert(changed)}, NOW) == ""
    assert invalidity({"cert": "none"}, NOW) == ""
