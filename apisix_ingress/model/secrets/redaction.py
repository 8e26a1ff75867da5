"""Making values safe to show: secrets masked, control characters escaped, everything plain data.

Used by logging and by every output of external text. Values are masked by the name of their key and their plugin
(`model.secrets.fields`), because they are registered, or by pattern. Independent of the destination of the text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from apisix_ingress.model.secrets.fields import ANYWHERE, Place, hides_item, is_secret_name
from apisix_ingress.model.secrets.texts import without_credentials, without_header
from apisix_ingress.model.secrets.value_mask import REDACTED, SHORTEST, encoded_forms

_DEEPEST = 8
_DEEPEST_SHOWN = 64
_LARGEST_INTEGER = 2**63 - 1

# Control characters, line separators, directional marks (they reorder what a reader sees) and lone
# surrogates (they cannot be encoded).
_UNPRINTABLE = {
    code: chr(code).encode("unicode_escape").decode("ascii")
    for first, last in (
        *((0, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029), (0xD800, 0xDFFF)),
        *((0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),
    )
    for code in range(first, last + 1)
}

_UNPRINTABLE_IN_QUOTES = {code: f"\\u{code:04x}" for code in _UNPRINTABLE if code > 0x1F}
"""Control characters that writers of JSON and YAML do not escape themselves."""

_registered: set[str] = set()


def register_secret(value: str) -> None:
    """Mask `value` from now on in every output, also as base64, in JSON or in a URL.

    Idempotent. Values under four characters are ignored.
    """
    if len(value) >= SHORTEST:
        _registered.update(encoded_forms(value))


def redact_text(text: str) -> str:
    """Mask registered secrets, private keys, credentials in headers, URLs and ``password=…`` in `text`."""
    return without_credentials(_without_registered(text), REDACTED)


def _without_registered(text: str) -> str:
    runs = [run for secret in _registered if secret in text for run in _runs(text, secret)]
    if not runs:
        return text
    pieces, at = list[str](), 0
    # A secret that contains another one, or overlaps it, is masked entirely.
    for start, end in sorted(runs):
        if start >= at:
            pieces += (text[at:start], REDACTED)
        at = max(at, end)
    return "".join((*pieces, text[at:]))


def _runs(text: str, secret: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each place of a secret in a text."""
    start = text.find(secret)
    while start >= 0:
        end = start + len(secret)
        yield start, end
        start = text.find(secret, end)


def _shown_name(name: str) -> str:
    """Return the name of a field. No pattern matches an identifier, and it has no characters to escape."""
    if name.isascii() and name.isidentifier():
        return _without_registered(name)
    return escape(redact_text(without_header(name, REDACTED)))


def escape(text: str, keep: str = "") -> str:
    r"""Write control characters as ``\n``, ``\x1b``, ``\u202e``, so that none can forge or repaint a line.

    Args:
        text: the text.
        keep: characters to leave as they are.
    """
    if text.isprintable():
        return text
    return text.translate({**_UNPRINTABLE, **{ord(each): each for each in keep}} if keep else _UNPRINTABLE)


def escape_in_quotes(document: str) -> str:
    r"""Write control characters in the quoted strings of JSON or YAML as ``\u009b``, which is the same document."""
    return document.translate(_UNPRINTABLE_IN_QUOTES)


def masked(
    value: Any,
    place: Place = ANYWHERE,
    *,
    leaf: Callable[[Any], Any] = lambda value: value,
    mark: str = REDACTED,
    depth: int = 0,
) -> Any:
    """Return a document of JSON without secrets and code; names, shape and line breaks stay.

    Args:
        value: The document.
        place: Its position.
        leaf: Function that is applied to every text, number and name first.
        mark: Replacement for a hidden field.
        depth: Its nesting depth; levels below 64 are cut off.
    """
    if isinstance(value, str):
        return _masked_text(value, place, leaf, mark, depth)
    if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST_SHOWN:
        return "..."
    if isinstance(value, Mapping):
        return {
            escape(redact_text(without_header(leaf(str(name)), REDACTED))): mark
            if place.hides(str(name), item, value)
            else masked(item, place.under(str(name), value), leaf=leaf, mark=mark, depth=depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            mark
            if hides_item(value, index)
            else masked(item, place.item(value, index), leaf=leaf, mark=mark, depth=depth + 1)
            for index, item in enumerate(value)
        ]
    return leaf(value)


def blank(value: Any) -> Any:
    """Return the shape of a JSON value without any of its texts and numbers."""
    if isinstance(value, Mapping):
        return {escape(redact_text(str(name))): blank(item) for name, item in value.items()}
    return value if isinstance(value, bool) or value in (None, "") else REDACTED


def _masked_text(text: str, place: Place, leaf: Callable[[Any], Any], mark: str, depth: int) -> str:
    shown = without_header(str(leaf(text)), REDACTED)
    if text[:1] in ("{", "[") and shown != REDACTED and (inner := _parsed(text)) is not None:
        clean = masked(inner, place, leaf=leaf, mark=mark, depth=depth + 1)
        if clean != inner:
            return escape(str(leaf(json.dumps(clean, ensure_ascii=False))), keep="\n\t")
    return escape(redact_text(shown), keep="\n\t")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_all_of)
    except (ValueError, RecursionError):
        return None


def _all_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping that keeps all values of a duplicate name."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = [found[name], value] if name in found else value
    return found


def sanitize(value: object, depth: int = 0, place: Place = ANYWHERE) -> object:
    """Return `value` as plain data that JSON can represent, masked and escaped at every level.

    Mappings and iterables are copied; an object of another type is shown as its `str`.
    """
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_INTEGER else str(value)
    if isinstance(value, str):
        # A line may begin with a word and a colon.
        return escape(redact_text(without_header(value, REDACTED) if depth else value))
    if depth >= _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return sanitize_mapping(value, depth + 1, place)
    if isinstance(value, list | tuple | set | frozenset):
        items = _ordered(value)
        return [
            REDACTED if hides_item(items, index) else sanitize(item, depth + 1, place.item(items, index))
            for index, item in enumerate(items)
        ]
    if isinstance(value, bytes | bytearray):
        return escape(redact_text(value.decode("utf-8", "backslashreplace")))
    return escape(redact_text(str(value)))


def sanitize_mapping(values: Mapping[Any, object], depth: int = 0, place: Place = ANYWHERE) -> dict[str, object]:
    """Sanitize keys and values; values under a key that is named like a secret are masked unless they are empty."""
    sanitized: dict[str, object] = {}
    for key, value in values.items():
        name = _shown_name(str(key))
        is_empty = value is None or value in ("", b"")
        if not is_empty and (is_secret_name(name) or (depth and place.hides(name, value, values))):
            sanitized[name] = REDACTED
        else:
            nested = isinstance(value, Mapping | list | tuple)
            sanitized[name] = sanitize(value, depth, place.under(name, values) if nested else place)
    return sanitized


def _ordered(values: Iterable[object]) -> Sequence[object]:
    return sorted(values, key=str) if isinstance(values, set | frozenset) else tuple(values)
