"""Which parts of a text are credentials: in headers, URLs and similar text. Names of fields are in `fields`.

Texts are untrusted and most contain no secrets: each pattern runs in time linear in the length of the text. A text for
which a pattern with lookaround exceeds its limit is masked as a whole.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import unquote

from apisix_ingress.model.formats.patterns import GuardedMatch, GuardedPattern, Match, TextPattern
from apisix_ingress.model.secrets.fields import ONLY_IN_URLS, is_secret_of_request, suggests_secret

# To the end of the text if the end of the block was cut off.
_PRIVATE_KEY = TextPattern(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)")
_SCHEMES = r"(?:bearer|basic)"
_NAMED = (
    GuardedPattern(rf"(?i)\b({_SCHEMES})(\s+)[A-Za-z0-9._~+/=-]{{8,}}"),
    # Values with spaces: to the end of the line or quote. After a dot it is the name of a field in a problem.
    GuardedPattern(
        rf"""(?i)(?<![\w.\]])((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)(?!{_SCHEMES}\s)[^\s"'\[][^\r\n"']*"""
    ),
    GuardedPattern(
        r"""(?i)\b((?:x[-_])?api[-_]key|(?:admin|client|private)[-_]key|password|authorization)\b(["']?\s*[:=]\s*)"""
        rf"""(?!{_SCHEMES}\s|\[[a-z]+\])("[^"]*"|'[^']*'|[^\s"',;&}})\]]+)"""
    ),
)
# Up to the last @ of an authority; past a slash if it may be part of a password (what precedes it is not a port).
_USER_OF_URL = GuardedPattern(r"""://(?!\[)(?:[^/?#\s"'<>]+|[^/?#\s:"'<>]{0,64}:(?!\d{1,5}[/?#])[^\s"'<>]{1,256})@""")
_USER_OF_ENCODED_URL = GuardedPattern(r"""(?i)(%3a%2f%2f)(?:(?!%2f|%3f|%23)[^\s"'&])+%40""")
# Without a scheme: a name and a password before a host.
_USER = GuardedPattern(
    r"""(?<![\w/.@:%+~-])(?!(?:mailto|sips?|urn):)([A-Za-z_][\w.+%~-]{0,63}:)(?![\w.-]{1,128}@sha\d{3}:)"""
    r"""[^\s/@"'<>]{1,256}@(?=[\w\[])"""
)
_PARAMETER = GuardedPattern(r"(?i)(?:\A|[?&#]|;\s?|%3f|%26|%23)([\w.~%\[\]$-]{1,64}?)(?:=|%3d)")
# A quote or semicolon ends the value unless the value continues after it.
_VALUE = GuardedPattern(rf"""(?i)(?!{_SCHEMES}\s)(?:[^&\s"'#;<>%]|%(?!26|23)|["';](?=[\w%+/=-]))+""")
_HEADER = TextPattern(r"(?m)^([A-Za-z][\w\p{L}\p{N}.-]*)([^\S\n]*:[^\S\n]*)\S.*")
# The path of such a URL is a credential: it permits posting.
_WEBHOOK = TextPattern(
    r"""(?i)((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks|hooks\.zapier\.com/hooks"""
    r"""|webhook\.office\.com/webhookb2|outlook\.office(?:365)?\.com/webhook|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook"""
    r"""|chat\.googleapis\.com/v1/spaces)/|api\.telegram\.org/bot)[^\s"'<>?#]+"""
)
_WEBHOOK_HINTS = ("hook", "telegram", "googleapis")
# None of the patterns matches in a text of only these characters.
_PLAIN = f"{string.ascii_letters}{string.digits}_./-"
# Each match of a pattern in `_NAMED` contains one of these.
_NAMED_HINTS = ("bearer", "basic", "authorization", "cookie", "key", "password")

_SHORT = 256
"""Characters of a text whose result is cached: thousands of conditions have the same message."""


def without_credentials(text: str, mark: str) -> str:
    """Return a text with `mark` for private keys, credentials in headers and URLs, and ``password=…``."""
    return _masked_before(text, mark) if len(text) <= _SHORT else _masked(text, mark)


def _masked(text: str, mark: str) -> str:
    if "/" in text and _may_contain(text, _WEBHOOK_HINTS):
        text = _WEBHOOK.sub(lambda found: f"{found[1]}{mark}", text)
    if not text.strip(_PLAIN):
        return text
    if "-----BEGIN " in text:
        text = _PRIVATE_KEY.sub(mark, text)
    try:
        return _masked_words(text, mark)
    except TimeoutError:
        return mark


def _masked_words(text: str, mark: str) -> str:
    if _may_contain(text, _NAMED_HINTS):
        for pattern in _NAMED:
            text = pattern.sub(rf"\1\2{mark}", text)
    if "@" in text:
        text = _USER_OF_URL.sub(f"://{mark}@", text)
        text = _USER.sub(rf"\1{mark}@", text)
    if "%40" in text:
        text = _USER_OF_ENCODED_URL.sub(rf"\1{mark}%40", text)
    if "=" in text or "%3" in text:
        text = "".join(_without_parameters(text, mark))
    return text


def _may_contain(text: str, hints: Sequence[str]) -> bool:
    """Return whether a pattern that ignores case may match: some letters beyond ASCII equal letters of ASCII then."""
    return not text.isascii() or any(map(text.lower().__contains__, hints))


_masked_before = lru_cache(maxsize=256)(_masked)


def without_header(text: str, mark: str) -> str:
    """Return a text with `mark` for the value of each line that is a header of credentials."""
    return _HEADER.sub(lambda found: _header(found, mark), text) if ":" in text else text


def without_arguments(text: str, mark: str) -> str:
    """Return directives of nginx, or JSON, with `mark` for each word after the name of a secret header or variable.

    The first word of a directive is not such a name: `auth_basic` is followed by a realm.
    """
    name, starts = "", True

    def shown(found: Match) -> str:
        nonlocal name, starts
        word, before = found[0], name
        is_quoted = word[0] in "\"'"
        plain = word[1:-1] if is_quoted and len(word) > 1 else word
        name = "" if word in _ENDS or (starts and not is_quoted) else plain.strip("$(")
        starts = word in _ENDS
        if before and not starts and not plain.startswith("$") and suggests_secret(before):
            return f"{word[0]}{mark}{word[0]}" if is_quoted else mark
        if is_quoted and ":" in plain:
            name = ""
            return f"{word[0]}{without_header(plain, mark)}{word[0]}"
        return word

    return _WORD.sub(shown, text)


_WORD = TextPattern(r"""(?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;{}"',:=]+|[;{}\n]""")
_ENDS = frozenset(";{}\n")


def _without_parameters(text: str, mark: str) -> Iterator[str]:
    """Yield a text in pieces; a value may itself be a URL with parameters."""
    copied, at = 0, 0
    while found := _PARAMETER.search(text, at):
        at = found.end()
        if _is_secret(found) and (value := _VALUE.match(text, at)):
            yield text[copied:at] + mark
            copied = at = value.end()
    yield text[copied:]


def _is_secret(found: GuardedMatch) -> bool:
    name = unquote(found[1])
    # After a semicolon follows a cookie, or an item of a sentence.
    return is_secret_of_request(name) and not (found[0].startswith(";") and name.lower() in ONLY_IN_URLS)


def _header(found: Match, mark: str) -> str:
    return f"{found[1]}{found[2]}{mark}" if suggests_secret(found[1]) else found[0]
