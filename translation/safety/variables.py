"""Variables that a gateway reads from the body of a request, with parsers that a small body occupies (APISIX 3.18).

* `graphql_…`: each bracket in `query($a: [[Int]])` doubles the time. A body of 54 bytes takes a second, and one of 94
  bytes two weeks. Comments and strings with `#` take quadratic time.
* `post_arg.…`: a client may send multipart/form-data. 40 kB of blanks in the name of a part take 20 seconds, and twice
  as many take four times as long. A JSONPath such as `post_arg.a[0:1:0]` never ends. `post_arg_…` reads forms only.

* `${a b}`: blanks take quadratic time: 60,000 of them 12 s, for every request.

A text with many variables is a further way to occupy a gateway: each of them may be as long as a path or header.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import FrozenJson
from translation.nginx.functions.attached import FIELD
from translation.safety.faults import Fault, every_text

_EVALUATED = ("vars", "plugins", "key")
"""The fields of records in which a gateway evaluates variables."""

MOST_VARIABLES = 500
"""Maximum number of variables in a record: up to 3.5 MB, if each is replaced with a path of 7 kB. 5,000 take 9 s."""

LONGEST = 200
"""Maximum length of a reference such as `${arg_a}`."""

_TOO_LONG = f"has a reference ${{…}} of more than {LONGEST} characters, which occupies a gateway; use a shorter one"
_TOO_MANY = f"is one of texts with more than {MOST_VARIABLES:,} variables, whose values occupy a gateway; use fewer"
_WHATS = {
    "graphql_": "refers to a variable graphql_…, for which a gateway parses the body of a request in exponential time;"
    " remove it",
    "post_arg.": "refers to a variable post_arg.…, for which a gateway parses the body of a request in quadratic time;"
    " use post_arg_… for a field of a form",
}
"""The beginning of a variable → what is wrong with it."""


def variable_faults(body: FrozenJson) -> Iterator[Fault]:
    """Yield the texts of a record that may refer to such a variable, whatever the gateway does with the text."""
    left = MOST_VARIABLES
    for field in _EVALUATED:
        for place, text in every_text(body.get(field), (field,)):
            for name, what in _WHATS.items():
                if name in text:
                    yield Fault(place, what)
            if "${" in text and _has_long_reference(text):
                yield Fault(place, _TOO_LONG)
            # In our own data, a dollar sign is a part of a hash of a password.
            if "$" in text and FIELD not in place:
                left -= (count := _count(text))
                if left < 0 <= left + count:
                    yield Fault(place, _TOO_MANY)


def _has_long_reference(text: str) -> bool:
    """Return whether more than the permitted number of characters may follow a `${` before a bracket closes it."""
    start = text.find("${")
    while start >= 0:
        end = text.find("}", start, start + LONGEST + 2)
        if end < 0 and len(text) > start + LONGEST:
            return True
        start = text.find("${", start + 2)
    return False


def _count(text: str) -> int:
    """Return how many variables a text may have; `$` ends a regular expression, too."""
    return sum(rest[:1].isalnum() or rest[:1] in ("_", "{") for rest in text.split("$")[1:])
