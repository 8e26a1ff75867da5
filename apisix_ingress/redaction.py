"""Making values safe to show: secrets masked, control characters escaped, everything plain data.

Used by logging and by whatever shows text that came from outside. Values are masked by the name of their key,
by having been registered, and by pattern, whichever hits first. Nothing here knows where the text goes.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

REDACTED = "[redacted]"

_SECRET_NAMES = frozenset(
    (
        *("key", "token", "password", "passwd", "secret", "credentials", "tls_key"),
        *("authorization", "proxy_authorization", "cookie", "set_cookie"),
        # What plugins of APISIX call theirs, beside names with the endings below (`encrypt_fields` of their schemas).
        *("auth_header", "passphrase", "secretkey", "secret_fallbacks", "service_account_json"),
    )
)
_SECRET_ENDINGS = (
    *("admin_key", "api_key", "client_key", "private_key", "secret_key", "access_key", "encryption_key"),
    *("apikey", "_token", "_password", "_secret", "_cookie"),
)
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A secret shorter than this is not masked by value: it would blot out half of every line and is guessed
# anyway.
_SHORTEST_SECRET = 4
_DEEPEST = 8
_LARGEST_INTEGER = 2**63 - 1

_PATTERNS = (
    # To the end of the text if the end of the block was cut off.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    (
        re.compile(
            r"""\b((?:x[-_])?api[-_]key|(?:admin|client|private)[-_]key|password|authorization)\b(["']?\s*[:=]\s*)"""
            r"""(?!(?:bearer|basic)\s)("[^"]*"|'[^']*'|[^\s"',;&})\]]+)""",
            re.IGNORECASE,
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"://[^/\s@]+@"), f"://{REDACTED}@"),
)
# None of the patterns matches in such a text.
_PLAIN = re.compile(r"[\w./-]*")
# Control characters, line separators, directional overrides (they reorder what a reader sees) and lone
# surrogates (they can't be encoded).
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_registered: set[str] = set()
_registered_pattern: re.Pattern[str] | None = None


def register_secret(value: str) -> None:
    """Mask `value` from now on wherever it turns up, also as base64, in JSON or in a URL.

    Idempotent. Values under four characters are ignored.
    """
    global _registered_pattern
    if len(value) < _SHORTEST_SECRET:
        return
    _registered.update(
        (value, base64.b64encode(value.encode()).decode(), json.dumps(value)[1:-1], quote(value, safe=""))
    )
    # Longest first, so that a secret which contains another one is masked as a whole.
    longest_first = sorted(_registered, key=len, reverse=True)
    _registered_pattern = re.compile("|".join(map(re.escape, longest_first)))


def redact_text(text: str) -> str:
    """Mask registered secrets, private keys, credentials in headers, URLs and ``password=…`` in `text`."""
    # Most of what is logged is a short name: these checks take a tenth of the time that the patterns do.
    if _registered_pattern is not None and any(secret in text for secret in _registered):
        text = _registered_pattern.sub(REDACTED, text)
    if not _PLAIN.fullmatch(text):
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
    return text


def escape(text: str, keep: str = "") -> str:
    r"""Write control characters as ``\n``, ``\x1b``, ``\u202e``, so that none can forge or repaint a line.

    Args:
        text: the text.
        keep: characters to leave as they are.
    """
    if text.isprintable():
        return text
    return _UNPRINTABLE.sub(lambda m: m[0] if m[0] in keep else _escaped(m[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def sanitize(value: object, depth: int = 0) -> object:
    """Return `value` as plain data that JSON can hold, masked and escaped at every level.

    Mappings and iterables are copied; an object that is none of JSON's types is shown as its `str`.
    """
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_INTEGER else str(value)
    if isinstance(value, str):
        return escape(redact_text(value))
    if depth >= _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return sanitize_mapping(value, depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return [sanitize(item, depth + 1) for item in _ordered(value)]
    if isinstance(value, bytes | bytearray):
        return escape(redact_text(value.decode("utf-8", "backslashreplace")))
    return escape(redact_text(str(value)))


def sanitize_mapping(values: Mapping[Any, object], depth: int = 0) -> dict[str, object]:
    """Sanitize keys and values; what stands under a key named like a secret is masked unless it is empty."""
    sanitized: dict[str, object] = {}
    for key, value in values.items():
        name = escape(redact_text(str(key)))
        hidden = is_secret_name(name) and value not in (None, "", b"")
        sanitized[name] = REDACTED if hidden else sanitize(value, depth)
    return sanitized


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Say whether a value under this key is a secret, by the key alone."""
    plain = _CAMEL_HUMP.sub("_", name).lower().replace("-", "_").replace(".", "_")
    return plain in _SECRET_NAMES or plain.endswith(_SECRET_ENDINGS)


def _ordered(values: Iterable[object]) -> Iterable[object]:
    return sorted(values, key=str) if isinstance(values, set | frozenset) else values
