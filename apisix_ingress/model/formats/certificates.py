"""Reads untrusted X.509 certificates; anything that cannot be read is a ValueError.

cryptography parses most parts of a certificate when they are first used, and reports faults by exceptions without a
common class. Callers decide what a certificate means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cryptography import x509

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, ExtensionType

    E = TypeVar("E", bound=ExtensionType)


def read_chain(text: bytes) -> list[Certificate]:
    """Return the certificates of a PEM text, a server's own first.

    Raises:
        ValueError: It contains no certificate, or one that cannot be read.
    """
    try:
        return x509.load_pem_x509_certificates(text)
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from None


def extension_of(certificate: Certificate, kind: type[E]) -> E | None:
    """Return an extension of a certificate, or None if it has none of this kind.

    Raises:
        ValueError: One of its extensions cannot be read.
    """
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None


def dns_names(certificate: Certificate) -> list[str]:
    """Return the DNS names that a certificate covers, sorted.

    Raises:
        ValueError: One of its extensions cannot be read.
    """
    names = extension_of(certificate, x509.SubjectAlternativeName)
    return sorted(names.get_values_for_type(x509.DNSName)) if names else []
