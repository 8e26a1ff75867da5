"""References: texts that a gateway replaces with its environment variables and secrets.

It replaces them in plugins and certificates (`fetch_secrets` of APISIX), where it also skips the check of their form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from translation.safety.faults import SECRET_REFUSED, Fault, Steps

_STARTS = ("$env://", "$secret://")
_LONGEST = max(map(len, _STARTS))
_WHAT = (
    "refers to an environment variable or a secret of the gateway, which the setting kubernetes.secret_references:"
    " refuse forbids; write the value, or read it from a Secret"
)


def is_reference(text: str) -> bool:
    """Return whether a gateway replaces a text."""
    return text.startswith("$") and text[:_LONGEST].lower().startswith(_STARTS)


def reference_faults(value: Any, steps: Steps = ()) -> Iterator[Fault]:
    """Yield the first reference below a value, with the path to it."""
    stack: list[tuple[Steps, Any]] = [(steps, value)]
    while stack:
        here, item = stack.pop()
        if isinstance(item, str):
            if is_reference(item):
                yield Fault(here, _WHAT, SECRET_REFUSED)
                return
        elif isinstance(item, dict):
            stack.extend(((*here, name), below) for name, below in item.items())
        elif isinstance(item, list):
            stack.extend(((*here, index), below) for index, below in enumerate(item))
