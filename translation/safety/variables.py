"""Variables that a gateway reads from the body of a request, with parsers that a small body occupies (APISIX 3.18).

* `graphql_…`: each bracket in `query($a: [[Int]])` doubles the time. A body of 54 bytes takes a second, and one of 94
  bytes two weeks. Comments and strings with `#` take quadratic time.
* `post_arg.` with a JSONPath: a slice such as `[0:9]` is expanded item by item, however short the list is, and one with
  the step 0 never ends.

A text with many variables is a further way to occupy a gateway: each of them may be as long as a path or header.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import FrozenJson
from translation.nginx.functions.attached import FIELD
from translation.safety.faults import Fault, every_text

_EVALUATED = ("vars", "plugins", "key")
"""The fields of records in which a gateway evaluates variables."""

MOST_VARIABLES = 5000
"""Maximum number of variables in a record: up to 35 MB, if each is replaced with a path of 7 kB."""

_GRAPHQL, _BODY = "graphql_", "post_arg."
_JSONPATH = ("[", "*", "..")
_TOO_MANY = f"is one of texts with more than {MOST_VARIABLES:,} variables, whose values occupy a gateway; use fewer"
_WHAT = (
    "refers to a variable graphql_…, for which a gateway parses the body of a request in exponential time; remove it"
)
_PATH = "has a JSONPath with [, * or .. after post_arg., which may occupy a gateway; name a field such as post_arg.a.b"


def variable_faults(body: FrozenJson) -> Iterator[Fault]:
    """Yield the texts of a record that may refer to such a variable, whatever the gateway does with the text."""
    left = MOST_VARIABLES
    for field in _EVALUATED:
        for place, text in every_text(body.get(field), (field,)):
            if _GRAPHQL in text:
                yield Fault(place, _WHAT)
            elif _BODY in text and any(sign in text.partition(_BODY)[2] for sign in _JSONPATH):
                yield Fault(place, _PATH)
            # In our own data, a dollar sign is a part of a hash of a password.
            if "$" in text and FIELD not in place:
                left -= (count := text.count("$"))
                if left < 0 <= left + count:
                    yield Fault(place, _TOO_MANY)
