"""Unusable certificate files, at the start and later."""

from pathlib import Path

import pytest
import trustme

from apisix_ingress.errors import ConfigError
from apisix_ingress.gateway.adminapi.tls import TlsContext, TlsFiles
from tests.fakes.clock import FakeClock


def test_missing_file_fails_the_start_with_its_name(tmp_path: Path) -> None:
    path = str(tmp_path / "none.pem")
    with pytest.raises(ConfigError, match=f"tls: {path}: No such file or directory; give readable PEM files"):
        TlsContext(TlsFiles(ca_file=path), clock=FakeClock())


def test_pair_that_does_not_match_fails_the_start(tmp_path: Path) -> None:
    authority = trustme.CA()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    authority.issue_cert("a.test").cert_chain_pems[0].write_to_path(cert)
    authority.issue_cert("b.test").private_key_pem.write_to_path(key)
    with pytest.raises(ConfigError, match="KEY_VALUES_MISMATCH"):
        TlsContext(TlsFiles(cert_file=str(cert), key_file=str(key)), clock=FakeClock())


def test_a_deleted_file_keeps_the_previous_context(tmp_path: Path) -> None:
    path, clock = tmp_path / "ca.pem", FakeClock()
    trustme.CA().cert_pem.write_to_path(path)
    tls = TlsContext(TlsFiles(ca_file=str(path)), clock=clock)
    before = tls.get()
    path.unlink()
    clock.shift(2)
    assert tls.get() is before
    trustme.CA().cert_pem.write_to_path(path)
    clock.shift(2)
    assert tls.get() is not before


def test_files_that_stay_leave_the_context(tmp_path: Path) -> None:
    path, clock = tmp_path / "ca.pem", FakeClock()
    trustme.CA().cert_pem.write_to_path(path)
    tls = TlsContext(TlsFiles(ca_file=str(path)), clock=clock)
    before = tls.get()
    clock.shift(60)
    assert tls.get() is before


def test_lazy_context_is_built_for_the_first_request(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    tls = TlsContext(TlsFiles(ca_file=str(path)), clock=FakeClock(), lazy=True)
    with pytest.raises(OSError, match=f"tls: {path}: No such file or directory"):
        tls.get()
    trustme.CA().cert_pem.write_to_path(path)
    assert tls.get() is tls.get()
