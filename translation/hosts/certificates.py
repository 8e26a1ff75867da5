"""Certificates: the pair of certificate and private key in a Secret, checked before it is sent.

A gateway accepts a pair that does not match and fails at the handshake (contract: Admin API fact 16). An expired
certificate is sent: clients decide whether to accept it. No message here contains a byte of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from apisix_ingress.model.formats.certificates import dns_names, read_chain
from apisix_ingress.model.formats.hashed_cache import kept_by_digest
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.record_owner import client_labels
from translation.core.context import Context

_FORMATS = (("cert", "key"), ("tls.crt", "tls.key"))
"""Keys of a Secret: the keys of APISIX take precedence over those of Kubernetes (v1-behaviour.md §2.9)."""

_MARKER = "-----BEGIN "

_CHECKS_KEPT = 1024


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain and its private key as PEM text; the key never appears in a repr."""

    certificate: str
    key: str = field(repr=False)


def foreign_labels(scope: Context, namespace: str, name: str) -> dict[str, str]:
    """Return the labels of a record with a client certificate or CA: only if a grant permits its use.

    After a restart they show which grant a record needs whose object cannot be translated.
    """
    if scope.options.cross_namespace != "grant" or namespace == scope.namespace:
        return {}
    return client_labels(namespace, name)


def key_pair(scope: Context, secret: Secret, path: str) -> KeyPair | None:
    """Return the pair in a Secret, or report what is wrong with it."""
    names = next((names for names in _FORMATS if names[0] in secret.data), None)
    if names is None:
        wrong = "has no certificate: put it under tls.crt, with its key under tls.key"
    elif names[1] not in secret.data:
        wrong = f"has no private key: put it under {names[1]}"
    elif any(scope.is_too_large(secret, [name], path) for name in names):
        return None
    else:
        certificate, key = (secret.data[name] for name in names)
        wrong = check_pair(certificate, key)
        if not wrong:
            return KeyPair(certificate.decode(), _without_preface(key.decode()))
    scope.error("InvalidCertificate", path, f"{secret.meta.key} {wrong}")
    return None


def _without_preface(key: str) -> str:
    """Return a key without the text that tools such as `openssl pkcs12` write before it.

    A gateway treats a key that does not begin with its marker as one that it had encrypted, and rejects it.
    """
    return key[key.index(_MARKER) :]


MOST_RSA_BITS = 8192
"""Maximum length of an RSA key: each handshake takes 50 ms of a gateway. With 15,360 bits, it is 350 ms."""


_MOST_BITS_OF_EXPONENT = 64
"""Maximum length of the public exponent, as in OpenSSL for long keys. Nearly all keys have 65537."""


@kept_by_digest(_CHECKS_KEPT)
def check_pair(certificate: bytes, key: bytes) -> str:
    """Return what is wrong with a pair, as the end of a sentence that begins with the Secret; empty if it is valid."""
    try:
        leaf = read_chain(certificate)[0]
        dns_names(leaf)
        certificate.decode()
        wanted = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return "has a certificate that cannot be read: it must be PEM, the server's own certificate first"
    try:
        # Testing whether the factors of an RSA key are primes takes up to 90 ms, which would block other objects.
        private = load_pem_private_key(key, None, unsafe_skip_rsa_key_validation=True)
        key.decode()
        got = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "has a private key that cannot be read: it must be PEM without a password"
    if got != wanted:
        return "has a private key that belongs to another certificate: replace one of them"
    if not isinstance(private, RSAPrivateKey):
        return ""
    if private.key_size > MOST_RSA_BITS:
        return f"has an RSA key of more than {MOST_RSA_BITS} bits: replace it with a shorter one"
    return "" if _is_plain(private) else "has an RSA key with wrong or unusual numbers: replace it with a new one"


def _is_plain(key: RSAPrivateKey) -> bool:
    """Return whether the numbers of a key are as long as its modulus requires.

    A gateway computes with the factors and exponents of the file, whatever they are: a factor of 20,000 bits beside a
    modulus of 2,048 takes 17 s for each handshake, which succeeds.
    """
    numbers, half = key.private_numbers(), key.key_size // 2 + 1
    p, q = numbers.p, numbers.q
    return (
        p * q == numbers.public_numbers.n
        and max(p, q).bit_length() <= half
        and (numbers.dmp1, numbers.dmq1) == (numbers.d % (p - 1), numbers.d % (q - 1))
        and 0 < numbers.d < p * q
        and numbers.iqmp < p
        and numbers.public_numbers.e.bit_length() <= _MOST_BITS_OF_EXPONENT
    )


def fingerprint_of(certificate: str) -> str:
    """Return the SHA-256 of the first certificate of a chain, which has been parsed before."""
    return read_chain(certificate.encode())[0].fingerprint(SHA256()).hex()


def names_of(certificate: str) -> list[str]:
    """Return the host names that a certificate covers, sorted; it has been parsed before."""
    return dns_names(read_chain(certificate.encode())[0])


def check_expiry(scope: Context, pair: KeyPair, secret: Secret, path: str, now: datetime | None) -> None:
    """Warn about a certificate that has expired; without a time, do nothing."""
    end = expiry_of(pair.certificate)
    if now is not None and end <= now:
        message = (
            f"the certificate in {secret.meta.key} expired on {end:%Y-%m-%d %H:%M} UTC: clients reject it; renew it"
        )
        scope.warn("CertificateExpired", path, message)


def check_names(scope: Context, hosts: Sequence[str], pair: KeyPair, secret: Secret, path: str) -> None:
    """Warn about hosts of a list that a certificate does not cover."""
    covered = covered_names(pair.certificate)
    for index, host in enumerate(hosts):
        if not _covers(covered, canonical_host(host)):
            message = f"{host} is not covered by the certificate in {secret.meta.key}: clients reject it; add the name"
            scope.warn("HostNotCovered", f"{path}[{index}]", message)


def _covers(covered: frozenset[str], host: str) -> bool:
    """Return whether a certificate name covers a host; a wildcard matches exactly one label."""
    _, _, parent = host.partition(".")
    return host in covered or f"*.{parent}" in covered


def expiry_of(certificate: str) -> datetime:
    """Return when the certificate of a record expires; it has been parsed before."""
    _, end = _facts(certificate)
    return end


def covered_names(certificate: str) -> frozenset[str]:
    """Return the names that a certificate covers, in lower case; it has been parsed before."""
    names, _ = _facts(certificate)
    return names


@kept_by_digest(_CHECKS_KEPT)
def _facts(certificate: str) -> tuple[frozenset[str], datetime]:
    leaf = read_chain(certificate.encode())[0]
    return frozenset(name.lower() for name in dns_names(leaf)), leaf.not_valid_after_utc
