"""Plugins and fields that run the user's code in a gateway, or expose internal APIs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apisix_ingress.model.json import JsonObject
from translation.core.context import Context

CODE_PLUGINS: Mapping[str, str] = {
    "serverless-pre-function": "runs Lua code",
    "serverless-post-function": "runs Lua code",
    "ext-plugin-*": "runs code in the gateway's plugin runners",
    "exit-transformer": "runs Lua code",
    "inspect": "runs Lua code",
    "script": "runs Lua code",
    "body-transformer": "renders templates, which may contain Lua code",
    "ai-prompt-template": "renders templates, which may contain Lua code",
    "request-validation": "compiles its schemas to Lua code, and strings in them become code",
    "oas-validator": "compiles schemas to Lua code, and strings in them become code",
    "mcp-bridge": "starts a program",
    "file-logger": "writes strings, which may be code, to files of the gateway",
    "public-api": "exposes the gateway's control API",
    "batch-requests": "sends requests that bypass the conditions of the route",
}
"""Plugin → what it does."""

CODE_FIELDS: Mapping[tuple[str, str], str] = {
    ("ai-rate-limiting", "cost_expr"): "is compiled to Lua code",
    ("openid-connect", "claim_schema"): "is compiled to Lua code, and strings in it become code",
}
"""Plugin and field → what happens to the field."""

NESTING = frozenset({"multi-auth", "workflow"})
"""Plugins that contain the configurations of others."""

CODE_META = "pre_function"
"""Lua code that every plugin accepts, in `_meta`."""

_PREFIX = "ext-plugin-"


def is_code(name: str) -> bool:
    """Return whether a plugin is one of `CODE_PLUGINS`."""
    return name in CODE_PLUGINS or name.startswith(_PREFIX)


def check_code(scope: Context, name: str, config: JsonObject, path: str) -> None:
    """Report plugins and fields that run the user's code if the settings reject it, including plugins inside others."""
    if scope.options.code_plugins == "allow":
        return
    _check(scope, name, config, path)
    stack = [nested_plugins(name, config)]
    while stack:
        for inner, its in stack.pop():
            _check(scope, inner, its, path)
            stack.append(nested_plugins(inner, its))


def nested_plugins(name: str, config: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and configuration of each plugin directly inside the configuration of another."""
    if not isinstance(config, dict):
        return
    if name == "multi-auth":
        for each in _dicts(config.get("auth_plugins")):
            yield from each.items()
    elif name == "workflow":
        for rule in _dicts(config.get("rules")):
            for action in _lists(rule.get("actions")):
                if len(action) > 1 and isinstance(action[0], str):
                    yield action[0], action[1]


def refuse_code(scope: Context, what: str, path: str) -> None:
    """Report a field that contains the user's code if the settings reject it."""
    if scope.options.code_plugins == "refuse":
        message = f"{what} is rejected by the controller's setting kubernetes.code_plugins: refuse; remove it"
        scope.forbid("CodeRefused", path, message)


def _check(scope: Context, name: str, config: Any, path: str) -> None:
    if is_code(name):
        refuse_code(scope, f"plugin {name}", f"{path}.name")
    elif isinstance(config, dict):
        meta = config.get("_meta")
        if isinstance(meta, dict) and CODE_META in meta:
            refuse_code(scope, f"_meta.{CODE_META} of plugin {name}", f"{path}.config")
        for field in (field for plugin, field in CODE_FIELDS if plugin == name and field in config):
            refuse_code(scope, f"{field} of plugin {name}", f"{path}.config")


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _lists(value: Any) -> Iterator[list[Any]]:
    return (item for item in value if isinstance(item, list)) if isinstance(value, list) else iter(())
