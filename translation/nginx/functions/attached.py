"""Functions of a route: they run in the gateway's own plugins serverless-pre-function and serverless-post-function.

These plugins take a field of ours in their configuration: the values that the functions work with. Each plugin runs in
one phase: the one before the backend is asked, the other when its answer has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject

FIELD = "ingress_nginx"
"""The field of the plugin's configuration that the functions read."""

_AFTER_LIMITS = 1000
"""The priority of functions that run before the backend is asked: requests are counted before they are checked."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, with the values that it reads.

    Attributes:
        text: Lua.
        values: By name; names differ between the functions of a route.
        late: Whether it runs when the backend's answer has come.
    """

    text: str
    values: JsonObject
    late: bool = False


def attached(functions: Sequence[Function]) -> dict[str, JsonObject]:
    """Return the plugins that run functions, in their order."""
    plugins: dict[str, JsonObject] = {}
    early = [function for function in functions if not function.late]
    late = [function for function in functions if function.late]
    if early:
        meta = {"_meta": {"priority": _AFTER_LIMITS}}
        plugins["serverless-pre-function"] = _plugin("access", early) | meta
    if late:
        plugins["serverless-post-function"] = _plugin("header_filter", late)
    return plugins


def _plugin(phase: str, functions: Sequence[Function]) -> JsonObject:
    values: JsonObject = {}
    for function in functions:
        values |= function.values
    return {"phase": phase, "functions": [function.text for function in functions], FIELD: values}
