"""JSON decoding with the error messages of the gateway's decoder."""

from __future__ import annotations

import re
from typing import Any

import orjson


class BadJson(ValueError):
    """The text is not valid JSON; the message is the gateway's."""


def decode(text: bytes) -> Any:
    """Decode; raises BadJson."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJson(_Scanner(text.decode("utf-8", "replace")).error() or str(error)) from error


_TOKENS = re.compile(
    r"\s*(?:(?P<T_OBJ_BEGIN>\{)|(?P<T_OBJ_END>\})|(?P<T_ARR_BEGIN>\[)|(?P<T_ARR_END>\])|(?P<T_COLON>:)"
    r"|(?P<T_COMMA>,)|(?P<T_STRING>\"(?:[^\"\\]|\\.)*\")|(?P<T_NUMBER>-?\d+(?:\.\d+|(?=[eE]))(?:[eE][+-]?\d+)?)|(?P<T_INTEGER>-?\d+)"
    r"|(?P<T_BOOLEAN>true\b|false\b)|(?P<T_NULL>null\b)|(?P<T_END>\Z))"
)
_VALUES = ("T_STRING", "T_NUMBER", "T_INTEGER", "T_BOOLEAN", "T_NULL")


class _Scanner:
    """Scans the text up to the first unexpected token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._place = 1

    def error(self) -> str | None:
        try:
            self._value(self._next())
            self._expect("the end", self._next(), "T_END")
        except BadJson as error:
            return str(error)
        return None

    def _next(self) -> str:
        found = _TOKENS.match(self._text, self._position)
        if found is None:
            rest = re.compile(r"\s*").match(self._text, self._position)
            self._place = (rest.end() if rest else self._position) + 1
            return "invalid token"
        kind = found.lastgroup or "T_END"
        self._place = found.start(kind) + 1
        self._position = found.end()
        return kind

    def _expect(self, what: str, token: str, *wanted: str) -> str:
        if token not in wanted:
            raise BadJson(f"Expected {what} but found {token} at character {self._place}")
        return token

    def _value(self, token: str) -> None:
        if token == "T_OBJ_BEGIN":
            self._object()
        elif token == "T_ARR_BEGIN":
            self._array()
        else:
            self._expect("value", token, *_VALUES)

    def _object(self) -> None:
        token = self._next()
        if token == "T_OBJ_END":
            return
        while True:
            self._expect("object key string", token, "T_STRING")
            self._expect("colon", self._next(), "T_COLON")
            self._value(self._next())
            if self._expect("comma or object end", self._next(), "T_COMMA", "T_OBJ_END") == "T_OBJ_END":
                return
            token = self._next()

    def _array(self) -> None:
        token = self._next()
        if token == "T_ARR_END":
            return
        while True:
            self._value(token)
            if self._expect("comma or array end", self._next(), "T_COMMA", "T_ARR_END") == "T_ARR_END":
                return
            token = self._next()
