"""The gateway's encryption at rest: AES-128-CBC with its default keyring, base64 around it."""

from __future__ import annotations

import base64
import binascii

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

DEFAULT_KEYS = ("qeddd145sfvddff3", "edd1c9f0985e76a2")
"""The keys in APISIX's default configuration, which are public."""


def _cipher(key: str) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(key.encode()), modes.CBC(key.encode()))


def encrypt(plain: str) -> str:
    """Encrypt with the first key of the ring."""
    padder = padding.PKCS7(128).padder()
    data = padder.update(plain.encode()) + padder.finalize()
    encryptor = _cipher(DEFAULT_KEYS[0]).encryptor()
    return base64.b64encode(encryptor.update(data) + encryptor.finalize()).decode()


def decrypt(secret: str) -> str | None:
    """Decrypt with the first key that fits, or return None."""
    try:
        data = base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        return None
    for key in DEFAULT_KEYS:
        decryptor, unpadder = _cipher(key).decryptor(), padding.PKCS7(128).unpadder()
        try:
            padded = decryptor.update(data) + decryptor.finalize()
            return (unpadder.update(padded) + unpadder.finalize()).decode()
        except (ValueError, UnicodeDecodeError):
            continue
    return None
