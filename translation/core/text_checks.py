"""Checks of every string in a user's object.

Control characters, and characters that make text look different from what it is, are rejected because a gateway, a log
or a terminal may misinterpret them. If the settings require it, references to secrets of the gateway are rejected as
well. No message contains the string, which may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import orjson

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.objects import CustomObject, Secret
from translation.core.context import Context

_NEVER = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{d800}-\x{dfff}"
_LINE = TextPattern(rf"[{_NEVER}\t\n\r\x{{61c}}\x{{200e}}\x{{200f}}\x{{2028}}-\x{{202e}}\x{{2066}}-\x{{2069}}]")
"""Forbidden in single-line strings: control characters, line breaks of any kind, marks that change the text
direction."""

_BLOCK = TextPattern(f"[{_NEVER}]")
"""Forbidden even in multi-line strings: code, a response body, a PEM key."""

_FREE = frozenset({"config", "args", "authParameter", "filter_func"})
"""Fields whose strings may have several lines."""

_STRICT = frozenset({"header", "headers", "host", "hosts", "uri", "uris", "path", "method", "methods"})
"""Last words of fields of a plugin whose strings must be on one line: they become part of the head of a request or a
response."""

_REFERENCE = TextPattern(r"(?i)\$(?:env|secret)://")
"""Strings that begin like this are replaced by the gateway: `$env://` in any case (APISIX core/env.lua),
`$secret://`."""

_MOST_REPORTED = 10
"""Maximum number of such mistakes reported for one object."""

Path: TypeAlias = "tuple[Path, str | int] | None"
"""The path of a value, the last part first; adding a part costs the same at any depth."""


class _Place(NamedTuple):
    """A value and its path."""

    value: Any
    path: Path = None
    block: bool = False


def check_object(scope: Context, obj: CustomObject) -> None:
    """Report invalid strings of an object, except annotations: those are checked where they are read."""
    for name, value in obj.meta.labels.items():
        check_text(scope, name + value, f"metadata.labels[{quoted(name)}]")
    check_text(scope, obj.meta.namespace + obj.meta.name, "metadata.name")
    check_spec(scope, obj.spec)


def check_spec(scope: Context, spec: Mapping[str, Any]) -> None:
    """Report invalid strings of a spec, up to a maximum number."""
    if _has_only_fine_texts(scope, spec):
        return  # nearly always: paths of values would cost more than everything else
    reported = 0
    for place in _texts(_Place(spec)):
        if _is_fine(scope, place.value, block=place.block):
            continue
        reported += _check(scope, place.value, "spec" + _dotted(place.path), block=place.block)
        if reported == _MOST_REPORTED:
            return


def check_text(scope: Context, text: str, path: str, *, block: bool = False) -> None:
    """Report forbidden content of a string; a multi-line one may contain line breaks and tabs."""
    _check(scope, text, path, block=block)


def check_secret(scope: Context, secret: Secret, key: str, text: str, path: str) -> None:
    """Report forbidden content of a value of a Secret that becomes a part of a record."""
    _check(scope, text, path, block=True, what=f"{secret.meta.key}: the value of {key} ")


def _texts(root: _Place) -> Iterator[_Place]:
    """Yield every string below a value, including the keys of mappings; a stack avoids deep recursion."""
    stack = [root]
    while stack:
        value, path, block = place = stack.pop()
        if isinstance(value, str):
            yield place
        elif isinstance(value, Mapping):
            for key, item in reversed(tuple(value.items())):
                name = str(key)
                lines = (block or name in _FREE) and not (block and _is_strict(name))
                stack.append(_Place(item, (path, name), lines))
                stack.append(_Place(name, (path, name), block))
        elif isinstance(value, list):
            stack.extend(_Place(value[index], (path, index), block) for index in reversed(range(len(value))))


def _is_strict(name: str) -> bool:
    return name.lower().replace("_", "-").rpartition("-")[2] in _STRICT


def _has_only_fine_texts(scope: Context, spec: Mapping[str, Any]) -> bool:
    """Return whether no string of a spec is rejected, whatever its path; a control character is escaped in JSON."""
    try:
        document = orjson.dumps(spec)
    except TypeError:  # nested too deeply, or not from JSON
        document = b"\\"
    text = "".join(_strings(spec)) if b"\\" in document else document.decode()
    return _is_fine(scope, text, block=False)


def _strings(root: Any) -> list[str]:
    """Return every string below a value, in any order."""
    found: list[str] = []
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            found.extend(map(str, value))
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return found


def _check(scope: Context, text: str, path: str, *, block: bool, what: str = "") -> bool:
    """Return whether a string was rejected."""
    if _has_forbidden(text, block=block) and (found := (_BLOCK if block else _LINE).search(text)):
        code = ord(found[0])
        scope.error("ControlCharacter", path, f"{what}contains the control character U+{code:04X}; remove it")
        return True
    if scope.options.secret_references == "refuse" and _has_reference(text):
        _refuse_reference(scope, path, what)
        return True
    return False


def _has_forbidden(text: str, *, block: bool) -> bool:
    """Return whether a string contains a forbidden character; most strings contain only printable ones of ASCII."""
    return not (text.isascii() and text.isprintable()) and (_BLOCK if block else _LINE).found(text)


def _is_fine(scope: Context, text: str, *, block: bool) -> bool:
    if _has_forbidden(text, block=block):
        return False
    return scope.options.secret_references != "refuse" or not _has_reference(text)


def _has_reference(text: str) -> bool:
    return "$" in text and _REFERENCE.found(text)


def _refuse_reference(scope: Context, path: str, what: str) -> None:
    message = (
        f"{what}refers to an environment variable or a secret of the gateway, which the setting"
        " kubernetes.secret_references: refuse forbids; write the value, or read it from a Secret"
    )
    scope.forbid("SecretReferenceRefused", path, message)


def _dotted(path: Path) -> str:
    parts = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{quoted(part)}")
    return "".join(reversed(parts))


def quoted(name: str) -> str:
    """Return a name for a message: a key may contain the text for which it was rejected."""
    return _LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", name) if _has_forbidden(name, block=False) else name
