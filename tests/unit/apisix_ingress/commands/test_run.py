"""What `run` does before the controller starts."""

import os
import ssl

import pytest

from apisix_ingress.commands.run import no_system_certificates


@pytest.mark.parametrize("before", [None, "/etc/company/ca.pem"])
def test_system_certificates_are_hidden_only_during_imports(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is None:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    else:
        monkeypatch.setenv("SSL_CERT_FILE", before)
    with no_system_certificates():
        assert ssl.create_default_context().get_ca_certs() == []
    assert os.environ.get("SSL_CERT_FILE") == before
