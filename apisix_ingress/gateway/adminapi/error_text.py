"""The error text of an Admin API reply, sanitized for conditions, Events and logs.

A reply can repeat what was sent (contract: fact 5), so anything that could be a secret is masked here. Replies are
untrusted, so the text is truncated first, and the work is proportional to the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import orjson

from apisix_ingress.gateway.adminapi.echoed_values import BLOCK, EchoedValues, Run
from apisix_ingress.model.formats.patterns import GuardedPattern, TextPattern
from apisix_ingress.model.json import FrozenJson

LIMIT = 1024
"""The maximum length of a message in characters."""

LONGEST_ERROR = 64 * 1024
"""Bytes of a reply that are searched for its message."""

_LONGEST = 8 * 1024
"""Characters of a message that are processed: masking may make it much shorter."""

_HIDDEN = "***"
_TITLE = TextPattern("(?i)<title>([^<]*)</title>")
_PEM = GuardedPattern(r"-----BEGIN [A-Z ]{1,64}-----")
_PEM_END = GuardedPattern(r"-----END [A-Z ]{1,64}-----")
# A value that the gateway quotes, up to the last quotation mark: the value may contain some itself.
_ECHO = GuardedPattern(r'\b(?:with|got) "')
_UNNAMED = r"(?<!property )(?<!plugin )"
_QUOTED = GuardedPattern(rf"""{_UNNAMED}(?:(?<!\w)"[^"]*"|(?<!\w)'[^']*')""")
_OPENING = GuardedPattern(rf"""{_UNNAMED}["']""")
# The beginning of code that does not compile, and the token at which the compiler failed.
_CODE = GuardedPattern(r'\[string "')
_NEAR = GuardedPattern(r"""\bnear ['"]""")
_LINE = GuardedPattern(r":\d{1,9}:")
_WORD = GuardedPattern(r"""[^\s"',;:=/?&()\[\]{}]*""")
_LONGEST_WORD = 256
_MESSAGE_FIELD = TextPattern(r'(?s)"(?:error_msg|message)"\s*:\s*"((?:[^"\\]|\\.)*)')


def message_of(content: bytes, status: int) -> str:
    """Return the message of a reply: `error_msg` with `description`, the title of an HTML page, or plain text."""
    if len(content) > LONGEST_ERROR:
        return _of_text(content[:LONGEST_ERROR].decode("utf-8", "replace")) or f"HTTP {status}"
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _of_text(content.decode("utf-8", "replace")) or f"HTTP {status}"
    if not isinstance(document, dict):
        return f"HTTP {status}"
    parts = [document.get(name) for name in ("error_msg", "message", "description")]
    return ": ".join(part for part in parts if isinstance(part, str) and part) or f"HTTP {status}"


def scrub(message: str, body: FrozenJson | None = None, *secrets: str) -> str:
    """Return a message on one line, truncated, without PEM blocks and without sensitive values of the body.

    Args:
        message: The gateway's message.
        body: The record that was sent. Its secret values are masked everywhere, other values of its plugins where the
            message quotes them.
        secrets: Other texts to mask, such as the admin key.
    """
    try:
        message = _masked(message, body, secrets)
    except TimeoutError:
        message = _HIDDEN
    message = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    return message if len(message) <= LIMIT else message[: LIMIT - 1] + "…"


def _masked(message: str, body: FrozenJson | None, secrets: Sequence[str]) -> str:
    # A value that crosses the cut is recognized by the characters after it, which are removed below.
    is_cut, message = len(message) > _LONGEST, message[: _LONGEST + BLOCK]
    message = _without_blocks(message, is_cut)
    if body is not None:
        message = _without_echo(message, is_cut)
    message = _without_values(message, body or {}, secrets)
    return _without_tail(message[:_LONGEST]) if is_cut else message


def _of_text(text: str) -> str:
    """Return the message of a reply that is not complete JSON."""
    if text[:1] == "{" and (found := _MESSAGE_FIELD.search(text)):
        return _unescaped(found[1])
    title = _TITLE.search(text)
    return title[1] if title else ("" if "<" in text[:20] else text)


def _unescaped(text: str) -> str:
    """Decode the escapes of a JSON string that may end within an escape sequence."""
    for cut in (text, text[:-6]):
        try:
            return str(orjson.loads(f'"{cut}"'))
        except orjson.JSONDecodeError:
            continue
    return text


def _without_blocks(message: str, is_cut: bool) -> str:
    """Mask PEM blocks, and code that does not compile."""
    pieces, at = list[str](), 0
    while begin := _PEM.search(message, at):
        end = _PEM_END.search(message, begin.end())
        pieces += (message[at : begin.start()], _HIDDEN)
        at = end.end() if end else len(message)
    message = "".join((*pieces, message[at:]))
    if code := _CODE.search(message):
        last = -1 if is_cut else message.rfind('"]', code.end() - 1)
        end_at = last + 2 if last >= 0 else len(message)
        line = _LINE.match(message, end_at)
        message = message[: code.start()] + _HIDDEN + message[line.end() if line else end_at :]
    if near := _NEAR.search(message):
        message = message[: near.start()] + _HIDDEN + _behind_last(message, near.end(), "\"'", is_cut)
    return message


def _without_echo(message: str, is_cut: bool) -> str:
    """Mask the value that the gateway quotes."""
    echo = _ECHO.search(message)
    if echo is None:
        return message
    rest = _behind_last(message, echo.end(), '"', is_cut)
    return f'{message[: echo.end()]}{_HIDDEN}"{rest}'


def _behind_last(message: str, start: int, marks: str, is_cut: bool) -> str:
    """Return what follows the last of some characters; empty if there is none, or the message was truncated."""
    last = max(message.rfind(mark, start) for mark in marks)
    return "" if is_cut or last < 0 else message[last + 1 :]


def _without_values(message: str, body: FrozenJson, secrets: Sequence[str]) -> str:
    """Mask secrets together with the words that contain them, and quoted values of plugins."""
    quotes = [found.span() for found in _QUOTED.finditer(message)]
    echoes = EchoedValues(message, body, {message[start + 1 : end - 1] for start, end in quotes}, secrets)
    runs = [_word(message, run) for run in echoes.secrets]
    runs += [(start + 1, end - 1) for start, end in quotes if message[start + 1 : end - 1] in echoes.quoted]
    starts = [start for start, _ in quotes]
    for run in echoes.values:
        place = bisect_right(starts, run[0]) - 1
        if place >= 0 and run[0] < quotes[place][1]:
            start, end = quotes[place]
            runs.append((start + 1, max(end - 1, run[1])))
        elif run[0] and _OPENING.match(message, run[0] - 1):
            runs.append(run)
    return _hide(message, runs)


def _word(message: str, run: Run) -> Run:
    """Return the position of the words that contain a part of a message."""
    before = _WORD.match(message[max(0, run[0] - _LONGEST_WORD) : run[0]][::-1])
    after = _WORD.match(message, run[1])
    return run[0] - (before.end() if before else 0), after.end() if after else run[1]


def _hide(message: str, runs: Iterable[Run]) -> str:
    pieces, at = list[str](), 0
    for start, end in sorted(runs):
        if start > at or not pieces:
            pieces += (message[at:start], _HIDDEN)
        at = max(at, end)
    return "".join((*pieces, message[at:]))


def _without_tail(message: str) -> str:
    """Mask what follows the last quotation mark of a truncated message: it may be the beginning of a value."""
    last = max(message.rfind('"'), message.rfind("'"))
    return message[: last + 1] + _HIDDEN if last >= 0 else message
