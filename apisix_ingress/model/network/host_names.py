"""Host names as requests have them: one spelling for each host, and what no host can be.

Gateways look at neither case nor a dot at the end of what a request asks for (contract: matching fact 1).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata

LONGEST_HOST = 253
LONGEST_LABEL = 63
"""Characters that a name of the DNS may have, and each part of it (RFC 1035 §2.3.4)."""

_HOST = re.compile(r"\*|\*?[0-9a-zA-Z._\-\[\]:]+")
"""What a gateway takes as a host (APISIX core schema)."""

_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
"""Scripts with letters that look alike, as Unicode names begin."""


def canonical_host(host: str) -> str:
    """Return the one spelling of a host: lower case, no dot at the end, an IPv6 address in its short form."""
    text = without_dot(host).lower()
    if text.startswith("[") and text.endswith("]"):
        try:
            return f"[{_short(ipaddress.IPv6Address(text[1:-1]))}]"
        except ValueError:
            return text
    return text


def _short(address: ipaddress.IPv6Address) -> str:
    """Return an address in its short form; Python writes one that stands for IPv4 otherwise from 3.13 on."""
    if address.ipv4_mapped is None:
        return str(address)
    high, low = divmod(int(address.ipv4_mapped), 0x10000)
    return f"::ffff:{high:x}:{low:x}"


def without_dot(host: str) -> str:
    """Return a host without the dot at its end, with which a gateway would never find it."""
    return host[:-1] if host.endswith(".") else host


def host_mistake(host: str) -> str:
    """Return what keeps a host from being one, as the end of a sentence; empty if nothing does."""
    name = without_dot(host)
    if len(name) > LONGEST_HOST:
        return f"is no host name: it has {len(name)} characters, and no host has more than {LONGEST_HOST}"
    longest = max(map(len, name.split(".")))
    if longest > LONGEST_LABEL and not name.startswith("["):
        return f"is no host name: a part of it has {longest} characters, and none may have more than {LONGEST_LABEL}"
    if host and not _HOST.fullmatch(name):
        return (
            f"is no host name: it may hold letters, digits, '-', '_' and '.', and '*' as its first one{in_ascii(name)}"
        )
    return ""


def in_ascii(host: str) -> str:
    """Return how a host is written that has other letters than those of the DNS; empty if it can't be told."""
    try:
        return "" if host.isascii() else f"; write {host.encode('idna').decode()}"
    except UnicodeError:
        return ""


def mixed_scripts(host: str) -> tuple[str, ...]:
    """Return the scripts of a label in which letters of several ones stand that look alike; empty if there is none."""
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
