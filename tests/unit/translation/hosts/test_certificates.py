"""Pairs of certificate and key."""

import ssl
import sys
from collections.abc import Mapping
from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from tests.unit.translation.objects import OPTIONS, make, pem, secret, world
from translation.core.context import Context
from translation.hosts import certificates
from translation.hosts.certificates import KeyPair, check_pair, covered_names, key_pair, names_of


def read(raw: JsonObject) -> tuple[KeyPair | None, list[str]]:
    view = world(raw).view()
    scope = Context("ApisixRoute", "default", view, OPTIONS)
    found = view.get(Secret, ObjectKey("Secret", "default", "secret"))
    assert found
    return key_pair(scope, found, "p"), [problem.message for problem in scope.problems]


def test_keys_of_apisix_override_those_of_kubernetes() -> None:
    one, two = pem(1), pem(2)
    raw = secret(cert=one.certificate, key=one.key, tls__crt=two.certificate, tls__key=two.key)
    assert read(raw) == (KeyPair(one.certificate, one.key), [])


def test_an_expired_certificate_is_accepted() -> None:
    one = pem(1)  # its last day was in 2020
    assert read(secret(tls__crt=one.certificate, tls__key=one.key)) == (KeyPair(one.certificate, one.key), [])


@pytest.mark.parametrize(
    "preface", ["\n\n", " ", "Bag Attributes\n    friendlyName: web\nKey Attributes: <No Attributes>\n"]
)
def test_a_key_is_sent_without_its_prefix(preface: str) -> None:
    one = pem(1)
    certificate = f"subject=CN = web\n{one.certificate}"
    got = read(secret(tls__crt=certificate, tls__key=preface + one.key))
    assert got == (KeyPair(certificate, one.key), [])


def test_text_of_a_pair_is_not_kept_for_longer_than_its_secret() -> None:
    one, secret_key = pem(3).certificate.encode(), pem(3).key.encode()
    before = sys.getrefcount(one), sys.getrefcount(secret_key)
    assert check_pair(one, secret_key) == ""
    assert (sys.getrefcount(one), sys.getrefcount(secret_key)) == before
    text = one.decode()
    held = sys.getrefcount(text)
    assert covered_names(text)
    assert sys.getrefcount(text) == held


def test_private_key_is_in_no_repr() -> None:
    assert pem(1).key not in repr(KeyPair("c", pem(1).key))


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (secret(other="x"), "has no certificate: put it under tls.crt, with its key under tls.key"),
        (secret(tls__crt=pem(1).certificate), "has no private key: put it under tls.key"),
        (secret(cert=pem(1).certificate, tls__key=pem(1).key), "has no private key: put it under key"),
        (
            secret(tls__crt="junk", tls__key=pem(1).key),
            "has a certificate that cannot be read: it must be PEM, the server's own certificate first",
        ),
        (
            secret(tls__crt=pem(1).certificate, tls__key="junk"),
            "has a private key that cannot be read: it must be PEM without a password",
        ),
        (
            secret(tls__crt=pem(1).certificate, tls__key=pem(1).locked_key),
            "has a private key that cannot be read: it must be PEM without a password",
        ),
        (
            secret(tls__crt=pem(1).certificate, tls__key=pem(2).key),
            "has a private key that belongs to another certificate: replace one of them",
        ),
        (
            make("Secret", "secret", data={"tls.crt": "/w==", "tls.key": "/w=="}),
            "has a certificate that cannot be read: it must be PEM, the server's own certificate first",
        ),
    ],
)
def test_bad_pair_is_reported_without_its_content(raw: JsonObject, want: str) -> None:
    assert read(raw) == (None, [f"Secret default/secret {want}"])


UNREADABLE = {
    "unknown version": (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x09"),
    "name that is not ASCII": (b"\x82\x0da.example.com", b"\x82\x0d\xff.example.com"),
    "name of a type without support": (b"\x82\x0da.example.com", b"\xa3\x0da.example.com"),
    "address of an unknown length": (b"\x82\x0da.example.com", b"\x87\x0da.example.com"),
    "extensions that are not a sequence": (b"\x06\x03\x55\x1d\x11\x04", b"\x06\x03\x55\x1d\x11\x05"),
}
"""What is changed in a certificate: bytes before and after. The parts are parsed when they are first used."""


@pytest.mark.parametrize(("before", "after"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_certificate_with_a_part_that_cannot_be_read_is_reported(before: bytes, after: bytes) -> None:
    one = pem(1)
    content = ssl.PEM_cert_to_DER_cert(one.certificate)
    assert before in content
    changed = ssl.DER_cert_to_PEM_cert(content.replace(before, after))

    want = "has a certificate that cannot be read: it must be PEM, the server's own certificate first"
    assert read(secret(tls__crt=changed, tls__key=one.key)) == (None, [f"Secret default/secret {want}"])


def test_a_long_rsa_key_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MOST_RSA_BITS", 2047)
    pair = pem(5, rsa_bits=2048)
    found = read(secret(tls__crt=pair.certificate, tls__key=pair.key))
    assert found == (
        None,
        ["Secret default/secret has an RSA key of more than 2047 bits: replace it with a shorter one"],
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"p": 1 << 20000 | 1},
        {"dmp1": 1 << 20000 | 1},
        {"d": 1 << 20000 | 1},
        {"iqmp": 1 << 20000 | 1},
        {"p": 1, "q": 0},
        {"e": 1 << 100 | 1},
    ],
    ids=lambda change: "-".join(change),
)
def test_an_rsa_key_with_numbers_that_occupy_a_gateway_is_rejected(change: Mapping[str, int]) -> None:
    """A gateway never tests them, and computes with them in each handshake."""
    key = rsa.generate_private_key(65537, 2048)
    numbers = key.private_numbers()
    values = {name: getattr(numbers, name) for name in ("d", "p", "q", "dmp1", "dmq1", "iqmp")}
    values = {"n": numbers.public_numbers.n, "e": numbers.public_numbers.e, **values, **change}
    content = der(
        0x30, b"".join(der(2, value.to_bytes(value.bit_length() // 8 + 1)) for value in (0, *values.values()))
    )
    crafted = ssl.DER_cert_to_PEM_cert(content).replace("CERTIFICATE", "RSA PRIVATE KEY").encode()
    public = rsa.RSAPublicNumbers(values["e"], values["n"]).public_key()
    name, day = x509.Name([]), datetime(2020, 1, 1)
    certificate = x509.CertificateBuilder(name, name, public, 1, day, day).sign(key, SHA256())

    got = check_pair(certificate.public_bytes(Encoding.PEM), crafted)

    assert got == ("has an RSA key with wrong or unusual numbers: replace it with a new one" if change else "")


def der(tag: int, content: bytes) -> bytes:
    """Return a value as in certificates and keys."""
    size = len(content)
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, size] if size < 128 else [tag, 0x80 | len(length), *length]) + content


def test_names_of_a_certificate_are_sorted() -> None:
    assert names_of(pem(3, names=("b.example.com", "a.example.com")).certificate) == ["a.example.com", "b.example.com"]
    assert names_of(pem(4, names=()).certificate) == []
