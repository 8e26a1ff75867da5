"""Host names as requests contain them: one canonical spelling for each host, and what an invalid host is.

Gateways ignore case and a trailing dot in the host of a request (contract: matching fact 1).
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
    """Return what is wrong with a host, as the end of a sentence; empty if it is valid."""
    name = without_dot(host)
    if len(name) > LONGEST_HOST:
        return f"is not a host name: it has {len(name)} characters; the limit is {LONGEST_HOST}"
    longest = max(map(len, name.split(".")))
    if longest > LONGEST_LABEL and not name.startswith("["):
        return f"is not a host name: one of its labels has {longest} characters; the limit is {LONGEST_LABEL}"
    if host and not _HOST.fullmatch(name):
        return (
            f"is not a host name: use letters, digits, '-', '_' and '.', with an optional leading '*'{in_ascii(name)}"
        )
    return ""


def in_ascii(host: str) -> str:
    """Return the ASCII spelling of a host with other letters, as a remedy; empty if there is none."""
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
