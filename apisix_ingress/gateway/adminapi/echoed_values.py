"""Finds the parts of a gateway's message that repeat values of the record that was sent; `error_text` masks them.

The message is short and the record may be large, so the message is indexed and the record is read once: the work is
linear in both. A text of the record is looked up by its blocks, so that parts of it are found as well: any part of at
least 23 characters, and any prefix or suffix of at least 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.secrets.fields import ANYWHERE, LONGEST_NAME, Place, hides_item

SHORTEST = 4
"""Shorter values are ignored: they could be words of any sentence."""

BLOCK = 12
"""The number of characters of a block; longer texts are looked up block by block."""

_SENSITIVE = TextPattern("(?i)key|secret|token|passw|credential|auth|private")

Run = tuple[int, int]
"""Start and end of a part of a message."""


class Index:
    """The short substrings of one message, and which of them occur in texts.

    Args:
        message: The message; the size of the index is proportional to it.
    """

    def __init__(self, message: str) -> None:
        self._message = message
        self._pieces = {
            size: {message[at : at + size] for at in range(len(message) - size + 1)}
            for size in range(SHORTEST, BLOCK + 1)
        }
        self._found: dict[int, set[str]] = {size: set() for size in self._pieces}

    def look(self, text: str) -> None:
        """Record which blocks of a text the message contains; linear in the text."""
        size = min(len(text), BLOCK)
        if size < SHORTEST:
            return
        pieces, found = self._pieces[size], self._found[size]
        for at in (*range(0, len(text) - size + 1, size), len(text) - size):
            block = text[at : at + size]
            if block in pieces:
                found.add(block)

    def runs(self) -> list[Run]:
        """Return the parts of the message that were found, in order; adjacent parts are merged."""
        hits = [(at, at + size) for size, found in self._found.items() if found for at in self._places(size, found)]
        runs: list[Run] = []
        for start, end in sorted(hits):
            if runs and start <= runs[-1][1]:
                runs[-1] = runs[-1][0], max(end, runs[-1][1])
            else:
                runs.append((start, end))
        return runs

    def _places(self, size: int, found: set[str]) -> Iterable[int]:
        return (at for at in range(len(self._message) - size + 1) if self._message[at : at + size] in found)


class EchoedValues:
    """The values of a record that a message repeats.

    Attributes:
        secrets: The positions of secret values.
        values: The positions of values of plugins, any of which may come from a Secret.
        quoted: Those of the quoted texts that are values of plugins.
    """

    def __init__(self, message: str, body: FrozenJson, quoted: Iterable[str], secrets: Iterable[str]) -> None:
        wanted, hidden, others = set(quoted), Index(message), Index(message)
        self.quoted: set[str] = set()
        for secret in secrets:
            hidden.look(secret)
        for text, is_secret, is_of_plugin in _texts(body):
            if is_secret:
                hidden.look(text)
            if is_of_plugin:
                others.look(text)
                if text in wanted and len(text) >= SHORTEST:
                    self.quoted.add(text)
        self.secrets, self.values = hidden.runs(), others.runs()


def _texts(body: FrozenJson) -> Iterator[tuple[str, bool, bool]]:
    """Yield every string value, whether it is secret, and whether it may be a Secret's value in a plugin.

    The values of a Secret are put into mappings, never into lists (`translation.plugins.configs`). No recursion.
    """
    only = "plugins" if "plugins" in body else None
    pending: list[tuple[Any, Place, bool, bool]] = [(body, ANYWHERE, False, only is None)]
    while pending:
        value, place, is_secret, is_of_plugin = pending.pop()
        if isinstance(value, str):
            yield value, is_secret, is_of_plugin
        elif isinstance(value, dict):
            for name, item in value.items():
                hides = is_secret or _sounds_secret(name) or place.hides(name, item, value)
                inside = is_of_plugin or (value is body and name == only)
                pending.append((item, place.under(name, value), hides, inside))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                hides = is_secret or hides_item(value, index)
                pending.append((item, place.item(value, index), hides, False))


def _sounds_secret(name: str) -> bool:
    return len(name) > LONGEST_NAME or _is_sensitive(name)


@lru_cache(maxsize=4096)
def _is_sensitive(name: str) -> bool:
    return _SENSITIVE.found(name)
