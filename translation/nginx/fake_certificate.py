"""The self-signed certificate of hosts without one, as in ingress-nginx: no client trusts it.

It must be the same after restarts and in all replicas, or each of them would write it again. So the key is derived
from a seed that only the controller knows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from translation.hosts.certificates import KeyPair

_NAME = "Kubernetes Ingress Controller Fake Certificate"
_HOST = "ingress.local"


@lru_cache(maxsize=4)
def fake_pair(seed: bytes) -> KeyPair:
    """Return a self-signed certificate and its key; equal seeds give identical bytes."""
    number = int.from_bytes(HKDF(hashes.SHA256(), 40, salt=None, info=_NAME.encode()).derive(seed or b"-"), "big")
    key = ec.derive_private_key(number % (2**255) + 1, ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(number % 2**120 + 1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2126, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    )
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyPair(certificate.public_bytes(Encoding.PEM).decode(), text)
