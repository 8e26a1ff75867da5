"""Host names as requests contain them: canonical form and validation.

Gateways ignore case and a trailing dot in the host of a request (contract: matching fact 1).
"""

from __future__ import annotations

import ipaddress
import unicodedata

from apisix_ingress.model.formats.patterns import ValuePattern

LONGEST_HOST = 253
LONGEST_LABEL = 63
"""Maximum length of a DNS name and of each label (RFC 1035 §2.3.4)."""

_HOST = ValuePattern(r"\*|\*?[0-9a-zA-Z._\-\[\]:]+")
"""Hosts that a gateway accepts (APISIX core schema)."""

_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
"""Prefixes of Unicode names of scripts with similar letters."""


def canonical_host(host: str) -> str:
    """Return the canonical form of a host: lower case, no trailing dot, an IPv6 address in short form."""
    text = without_dot(host).lower()
    if text.startswith("[") and text.endswith("]"):
        try:
            return f"[{_short(ipaddress.IPv6Address(text[1:-1]))}]"
        except ValueError:
            return text
    return text


def _short(address: ipaddress.IPv6Address) -> str:
    """Return an address in short form; Python 3.13 and later format IPv4-mapped addresses differently."""
    if address.ipv4_mapped is None:
        return str(address)
    high, low = divmod(int(address.ipv4_mapped), 0x10000)
    return f"::ffff:{high:x}:{low:x}"


def without_dot(host: str) -> str:
    """Return a host without a trailing dot, which a gateway would never match."""
    return host[:-1] if host.endswith(".") else host


def host_mistake(host: str) -> str:
    """Return the error in a host, as the end of a sentence; empty if it is valid."""
    name = without_dot(host)
    if len(name) <= LONGEST_LABEL and _HOST.fits(name):
        return ""
    if len(name) > LONGEST_HOST:
        return f"is not a host name: it has {len(name)} characters; the limit is {LONGEST_HOST}"
    longest = max(map(len, name.split(".")))
    if longest > LONGEST_LABEL and not name.startswith("["):
        return f"is not a host name: one of its labels has {longest} characters; the limit is {LONGEST_LABEL}"
    if host and not _HOST.fits(name):
        return (
            f"is not a host name: use letters, digits, '-', '_' and '.', with an optional leading '*'{in_ascii(name)}"
        )
    return ""


def in_ascii(host: str) -> str:
    """Return the ASCII form of an internationalized host as a remedy; empty if it has no such form."""
    try:
        return "" if host.isascii() else f"; write {host.encode('idna').decode()}"
    except UnicodeError:
        return ""


def mixed_scripts(host: str) -> tuple[str, ...]:
    """Return the scripts of a label that mixes similar letters of several scripts; empty if it does not."""
    if "xn--" not in host.lower():
        return ()
    for label in host.lower().split("."):
        found = {unicodedata.name(letter, "").partition(" ")[0] for letter in _decoded(label)} & _ALIKE
        if len(found) > 1:
            return tuple(sorted(found))
    return ()


def _decoded(label: str) -> str:
    try:
        return label.removeprefix("xn--").encode().decode("punycode") if label.startswith("xn--") else ""
    except UnicodeError:
        return ""
