"""Certificates that are not trusted."""

import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from apisix_ingress.model.formats.certificates import dns_names, extension_of, read_chain
from tests.unit.translation.objects import pem

UNKNOWN = x509.ObjectIdentifier("1.2.3.4"), x509.ObjectIdentifier("1.2.3.5")


def test_names_are_sorted_and_may_be_absent() -> None:
    (leaf,) = read_chain(pem(1, names=("b.test", "a.test")).certificate.encode())
    (bare,) = read_chain(pem(2, names=()).certificate.encode())
    assert (dns_names(leaf), dns_names(bare)) == (["a.test", "b.test"], [])


def test_an_extension_that_occurs_twice_cannot_be_read() -> None:
    content = ssl.PEM_cert_to_DER_cert(_with_unknown_extensions())
    twice = content.replace(b"\x06\x03\x2a\x03\x05", b"\x06\x03\x2a\x03\x04")
    (leaf,) = read_chain(ssl.DER_cert_to_PEM_cert(twice).encode())

    with pytest.raises(ValueError, match="Duplicate"):
        extension_of(leaf, x509.BasicConstraints)


def test_a_certificate_of_an_unknown_version_cannot_be_read() -> None:
    content = ssl.PEM_cert_to_DER_cert(pem(1).certificate)
    changed = content.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09")

    with pytest.raises(ValueError, match="not a valid X509 version"):
        read_chain(ssl.DER_cert_to_PEM_cert(changed).encode())


def _with_unknown_extensions() -> str:
    found = pem(1)
    key = load_pem_private_key(found.key.encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    (leaf,) = read_chain(found.certificate.encode())
    builder = x509.CertificateBuilder(
        leaf.issuer,
        leaf.subject,
        key.public_key(),
        leaf.serial_number,
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )
    for name in UNKNOWN:
        builder = builder.add_extension(x509.UnrecognizedExtension(name, b"\x05\x00"), critical=False)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()
