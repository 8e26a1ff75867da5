"""Requests from a file, one per line: `[METHOD] URL [-H 'NAME: VALUE']…`; empty lines and comments are ignored."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlsplit

from apisix_ingress.errors import UsageError
from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.verify.model import Probe

_METHOD = ValuePattern(r"[A-Z]{1,20}")
_SAFE = "/%:@!$&'()*+,;=~-._?[]"


def probes_of(lines: Iterable[str], name: str) -> Iterator[Probe]:
    """Yield a request for each line.

    Raises:
        UsageError: A line is invalid; the message names it and shows the format.
    """
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                yield _probe(shlex.split(line), f"{name}:{number}")
            except ValueError as error:
                raise UsageError(
                    f"{name}:{number}: {error}; write [METHOD] https://host/path [-H 'Name: value'], one per line"
                ) from None


def _probe(words: list[str], origin: str) -> Probe:
    method = words.pop(0) if len(words) > 1 and _METHOD.fits(words[0]) else "GET"
    url = words.pop(0)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{url!r} is not a URL with scheme and host")
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return Probe(parts.netloc.rpartition("@")[2], target, parts.scheme, method, tuple(_headers(words)), origin)


def _headers(words: list[str]) -> Iterator[tuple[str, str]]:
    rest = iter(words)
    for word in rest:
        name, colon, value = next(rest, "").partition(":")
        if word != "-H" or not colon:
            raise ValueError(f"{word!r} is not a header option")
        yield name.strip(), value.strip()
