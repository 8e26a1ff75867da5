"""Plugins: from the list of a spec to the `plugins` of a record, Secrets and authentication included.

No input is changed: a configuration is copied where a Secret is merged into it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kube import Secret
from translation.scope import Scope
from translation.texts import check_secret

if TYPE_CHECKING:
    from crds.v2.common import Plugin
    from crds.v2.route import Authentication

Plugins = dict[str, JsonObject]
"""Plugin → configuration, as a record has them."""

_CODE = frozenset(
    {
        "serverless-pre-function",
        "serverless-post-function",
        "exit-transformer",
        "inspect",
        "script",
        # Its templates may hold Lua code (lua-resty-template).
        "body-transformer",
        # It starts a program of the user's choice.
        "mcp-bridge",
        # It writes texts of the user's choice to files of the user's choice, those with code included.
        "file-logger",
        # They run no code, but open what is not meant for users: the control API, and requests past the route's rules.
        "public-api",
        "batch-requests",
    }
)
_CODE_PREFIX = "ext-plugin-"
_CODE_META = "pre_function"
"""Lua code that every plugin takes, in `_meta`."""


def translate_plugins(scope: Scope, plugins: Sequence[Plugin], path: str) -> Plugins:
    """Return the enabled plugins; of two with one name the later one. What is wrong is noted in `scope`."""
    found: Plugins = {}
    for index, plugin in enumerate(plugins):
        if not plugin.enable:
            continue
        here = f"{path}[{index}]"
        if plugin.name in found:
            scope.warn("PluginTwice", here, f"plugin {plugin.name} is there twice: the last one counts; remove one")
        found[plugin.name] = _config(scope, plugin, here)
        check_code(scope, plugin.name, found[plugin.name], here)
    return found


def check_code(scope: Scope, name: str, config: JsonObject, path: str) -> None:
    """Note a plugin that runs the user's code where the settings refuse that."""
    meta = config.get("_meta")
    if name in _CODE or name.startswith(_CODE_PREFIX):
        refuse_code(scope, f"plugin {name}", f"{path}.name")
    elif isinstance(meta, dict) and _CODE_META in meta:
        refuse_code(scope, f"_meta.{_CODE_META} of plugin {name}", f"{path}.config")


def refuse_code(scope: Scope, what: str, path: str) -> None:
    """Note a field that holds the user's code where the settings refuse that."""
    if scope.options.code_plugins == "refuse":
        message = f"{what} is refused by the controller's setting kubernetes.code_plugins: refuse; remove it"
        scope.error("CodeRefused", path, message)
        scope.forbidden = True


def _config(scope: Scope, plugin: Plugin, path: str) -> JsonObject:
    config = plugin.config or {}
    if not plugin.secret_ref:
        return config
    secret = scope.secret(plugin.secret_ref, f"{path}.secretRef")
    return config if secret is None else _merged(scope, config, secret, f"{path}.secretRef")


def _merged(scope: Scope, config: JsonObject, secret: Secret, path: str) -> JsonObject:
    """Return a copy of a configuration with the values of a Secret over it; a dot in a key leads into a mapping."""
    result = copy.deepcopy(config)
    for key in sorted(secret.data):
        try:
            value = secret.data[key].decode()
        except UnicodeDecodeError:
            scope.error("InvalidSecret", path, f"{secret.meta.key}: the value of {key} is not UTF-8 text; replace it")
            continue
        check_secret(scope, secret, key, value, path)
        _put(result, key.split("."), value)
    return result


def _put(target: JsonObject, keys: Sequence[str], value: str) -> None:
    """Assign a value below nested mappings; anything else in the way gives way to a mapping."""
    *parents, last = keys
    for key in parents:
        if not isinstance(target.get(key), dict):
            target[key] = {}
        target = target[key]
    if last:
        # A key that ends with a dot names no field; the 1.8 line takes it as far as it leads.
        target[last] = value


def authenticate(plugins: Plugins, authentication: Authentication | None) -> None:
    """Add the plugin of an `authentication` block, in place of one of the same name (v1-behaviour.md §2.5)."""
    if authentication is None or not authentication.enable:
        return
    match authentication.type:
        case "keyAuth":
            options = authentication.key_auth
            plugins["key-auth"] = _present(header=options.header) if options else {}
        case "jwtAuth":
            jwt = authentication.jwt_auth
            plugins["jwt-auth"] = _present(header=jwt.header, query=jwt.query, cookie=jwt.cookie) if jwt else {}
        case "ldapAuth":
            ldap = authentication.ldap_auth
            plugins["ldap-auth"] = (
                _present(base_dn=ldap.base_dn, ldap_uri=ldap.ldap_uri, use_tls=ldap.use_tls, uid=ldap.uid)
                if ldap
                else {}
            )
        case "wolfRBAC":
            plugins["wolf-rbac"] = {}
        case "hmacAuth":
            plugins["hmac-auth"] = {}
        case _:  # basicAuth, or nothing
            plugins["basic-auth"] = {}


def _present(**fields: Any) -> JsonObject:
    return present(fields)


def present(fields: Mapping[str, Any]) -> JsonObject:
    """Return the fields that are neither empty nor zero nor false."""
    return {name: value for name, value in fields.items() if value}
