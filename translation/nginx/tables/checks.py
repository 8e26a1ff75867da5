"""Checks of the values of annotations, as the parsers of ingress-nginx 1.15 make them (internal/ingress/annotations).

A check gets the value as it is written. Texts are read without spaces at their ends; many patterns are matched after
every space has been removed; numbers and booleans may not have any.
"""

from __future__ import annotations

from collections.abc import Callable

from apisix_ingress.model.formats.patterns import LONGEST_LIST, TextPattern, ValuePattern
from translation.nginx.tables.values import Outcome, boolean, compiles, integer, networks, size

Check = Callable[[str], bool]


def is_bool(text: str) -> bool:
    """Return whether a text is a boolean."""
    return boolean(text) is not None


def is_int(text: str) -> bool:
    """Return whether a text is an integer."""
    return integer(text) is not None


def is_natural(text: str) -> bool:
    """Return whether a text is a non-negative number."""
    found = integer(text)
    return found is None or found >= 0


def at_least(least: int) -> Check:
    """Return a check that a number is not below the minimum; texts that are not numbers pass."""

    def valid(text: str) -> bool:
        found = integer(text)
        return found is None or found >= least

    return valid


def empty_or(check: Check) -> Check:
    """Return a check that also accepts the empty text."""
    return lambda text: not text or check(text)


def like(pattern: str) -> Check:
    """Return a check that the whole text matches a pattern."""
    return ValuePattern(pattern).fits


def spaced(pattern: str) -> Check:
    """Return a check that the whole text matches a pattern, apart from spaces anywhere, and is one line."""
    fits = ValuePattern(pattern).fits
    return lambda text: fits(text.replace(" ", "")) and "\r" not in text and "\n" not in text


def one_word(pattern: str) -> Check:
    """Return a check that the text without spaces at its ends matches a pattern."""
    return trimmed(like(pattern))


def trimmed(check: Check) -> Check:
    """Return a check of the text without spaces at its ends."""
    return lambda text: check(text.strip())


def one_of(*words: str) -> Check:
    """Return a check that a text is one of some words, apart from spaces at its ends."""
    return lambda text: text.strip() in words


def if_spaced(outcome: Outcome, otherwise: Outcome) -> Callable[[str], Outcome]:
    """Return the outcome of a value that is two words, and of any other one."""
    return lambda text: outcome if " " in text.strip() else otherwise


def secret_type_outcome(text: str) -> Outcome:
    """Return the outcome of an invalid auth-secret-type: one that contains a valid one passes the first check only."""
    given = text.replace(" ", "")
    return "closed" if "auth-file" in given or "auth-map" in given else "refused"


def are_networks(text: str) -> bool:
    """Return whether a text is a list of networks."""
    return networks(text) is not None


def is_size(text: str) -> bool:
    """Return whether a text is a size of nginx."""
    return size(text) is not None


BALANCERS = ("round_robin", "ewma", "sticky_balanced", "sticky_persistent")
"""Without affinity, the sticky balancers choose any endpoint."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE")

# The patterns of internal/ingress/annotations/parser/validators.go.
_BASIC = r"\-._~a-zA-Z0-9/:"
_SERVER = rf"[{_BASIC}^$\[\](){{}}*+?|&=\\]*"

WORD = rf"[{_BASIC}]+"
AGES = spaced(r"(?s:0.*|.*?-?[1-9]\d*)")
BASIC = spaced(rf"[{_BASIC}]*")
WORDS = like(rf"[{_BASIC} ]*")
URLS = like(rf"[{_BASIC},?&=]*")
URLS_AND_SPACES = spaced(rf"[{_BASIC},?&=]*")
URLS_AND_VARIABLES = spaced(rf"[{_BASIC},?&=$]*")
LISTS = like(rf"[{_BASIC}, ]*")
CAPTURES = like(rf"[{_BASIC}$]*")
CAPTURES_AND_SPACES = spaced(rf"[{_BASIC}$]*")
HEADERS = spaced(r"[A-Za-z0-9_,-]*")
NAMES = spaced(r"[A-Za-z0-9._-]+")
SERVICES = like(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
VARIABLES = spaced(r"[A-Za-z0-9_${}-]*")
SERVERS = trimmed(like(_SERVER))
PATTERNS = like(_SERVER)
CODES = spaced(r"(?:[45,][0-9]{2},?)*")
FAILURES = like(r"(?:(?:error|timeout|invalid_header|http_50[0234]|http_40[34]|http_429|non_idempotent|off)\s?)+")
ROOTS = like(rf"/[{_BASIC}]*")

ORIGIN_LIST = ValuePattern(r"(?:[a-z]://|\*\.|:[0-9]+|[A-Za-z0-9\-.,])*|\*", LONGEST_LIST)
ORIGIN = ValuePattern(r"[a-z]+://(\*\.)?[A-Za-z0-9\-.]*(:[0-9]+)?|null")


def are_servers(text: str) -> bool:
    """Return whether every name in a list of names of servers is valid."""
    return all(map(SERVERS, text.split(",")))


_NOT_IN_NAMES = TextPattern(r"\(\?<?[=!]|[;\r\n]")


def is_common_name(text: str) -> bool:
    """Return whether a text is a pattern for the subject of a certificate; Go has no lookaround."""
    if not text.startswith("CN=") or _NOT_IN_NAMES.found(text):
        return False
    return compiles(text[3:])


_CODES_AND_TIME = ValuePattern(r"(\d{3} +|any +)*\d+(ms|s|m|h|d|w|M|y)")


def are_durations(text: str) -> bool:
    """Return whether ingress-nginx reads a text as the time to cache responses: `200 202 10m, 401 1m`."""
    if not LISTS(text):
        return True
    parts = (part.strip() for part in text.split(","))
    return all(_CODES_AND_TIME.fits(part) for part in parts if part)


def is_signin(text: str) -> bool:
    """Return whether a text is the address of a sign-in page."""
    return URLS_AND_VARIABLES(text) and is_one_word(text)


def is_one_word(text: str) -> bool:
    """Return whether a text has no spaces except at its ends."""
    return len(text.split()) < 2


def is_same_site(text: str) -> bool:
    """Return whether a text is a value of the attribute SameSite, in any case."""
    return text.strip().lower() in ("none", "lax", "strict")


def is_cookie_path(text: str) -> bool:
    """Return whether a text specifies a replacement in the paths of cookies."""
    return URLS_AND_SPACES(text) and (text.strip() == "off" or len(text.split()) == 2)


def cookie_path_outcome(text: str) -> Outcome:
    """Return the outcome of an invalid proxy-cookie-path: nginx accepts only two words."""
    return "refused" if text.strip() and URLS_AND_SPACES(text) else "default"
