"""Plugins: from the list of a spec to the `plugins` of a record, Secrets and authentication included.

Inputs are not changed: a configuration is copied before a Secret is merged into it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Secret
from translation.core.context import Context
from translation.core.text_checks import check_secret
from translation.plugins.code import check_code

if TYPE_CHECKING:
    from crds.v2.common import Plugin
    from crds.v2.route import Authentication

Plugins = dict[str, JsonObject]
"""Plugin → configuration, as in a record."""


def translate_plugins(scope: Context, plugins: Sequence[Plugin], path: str) -> Plugins:
    """Return the enabled plugins; if two have the same name, the later one. Problems are reported in `scope`."""
    found: Plugins = {}
    for index, plugin in enumerate(plugins):
        if not plugin.enable:
            continue
        here = f"{path}[{index}]"
        if plugin.name in found:
            scope.warn(
                "PluginTwice", here, f"plugin {plugin.name} is configured twice: the last one is used; remove one"
            )
        found[plugin.name] = review(scope, plugin.name, _config(scope, plugin, here), here, f"{here}.config")
    return found


def review(scope: Context, name: str, config: JsonObject, path: str, config_path: str = "") -> JsonObject:
    """Report what the settings reject in a plugin; return its configuration with the namespace in shared names.

    Args:
        scope: The object that has the plugin.
        name: Of the plugin.
        config: Its configuration, merged with its Secret; it is not changed.
        path: The field that the plugin comes from.
        config_path: The field with the configuration; empty if the object has no such field.
    """
    check_code(scope, name, config, path)
    # Global rules affect every team: RBAC decides who may write them.
    if scope.options.plugins == "all" or scope.kind == "ApisixGlobalRule":
        return config
    from translation.plugins.policy import judge  # hundreds of rules, imported only if they are used

    return judge(scope, name, config, path, config_path)


def _config(scope: Context, plugin: Plugin, path: str) -> JsonObject:
    config = plugin.config or {}
    if not plugin.secret_ref:
        return config
    secret = scope.secret(plugin.secret_ref, f"{path}.secretRef")
    if secret is None or scope.is_too_large(secret, secret.data, f"{path}.secretRef"):
        return config
    return _merged(scope, config, secret, f"{path}.secretRef")


def _merged(scope: Context, config: JsonObject, secret: Secret, path: str) -> JsonObject:
    """Return a copy of a configuration, overridden by the values of a Secret; a dot in a key leads into a mapping."""
    result = copy.deepcopy(config)
    for key in sorted(secret.data):
        try:
            value = secret.data[key].decode()
        except UnicodeDecodeError:
            scope.error("InvalidSecret", path, f"{secret.meta.key}: the value of {key} is not UTF-8; replace it")
            continue
        check_secret(scope, secret, key, value, path)
        _put(result, key.split("."), value)
    return result


def _put(target: JsonObject, keys: Sequence[str], value: str) -> None:
    """Assign a value below nested mappings; other values on the path are replaced by mappings."""
    *parents, last = keys
    for key in parents:
        if not isinstance(target.get(key), dict):
            target[key] = {}
        target = target[key]
    if last:
        # A key that ends with a dot names no field; 1.8 uses the part before the dot.
        target[last] = value


def authenticate(scope: Context, plugins: Plugins, authentication: Authentication | None, path: str) -> None:
    """Add the plugin of an `authentication` block; it replaces one with the same name (v1-behaviour.md §2.5)."""
    if authentication is None or not authentication.enable:
        return
    for name, config in _authentication(authentication).items():
        plugins[name] = review(scope, name, config, path)


def _authentication(authentication: Authentication) -> Plugins:
    match authentication.type:
        case "keyAuth":
            options = authentication.key_auth
            return {"key-auth": _present(header=options.header) if options else {}}
        case "jwtAuth":
            jwt = authentication.jwt_auth
            return {"jwt-auth": _present(header=jwt.header, query=jwt.query, cookie=jwt.cookie) if jwt else {}}
        case "ldapAuth":
            ldap = authentication.ldap_auth
            if ldap is None:
                return {"ldap-auth": {}}
            fields = _present(base_dn=ldap.base_dn, ldap_uri=ldap.ldap_uri, use_tls=ldap.use_tls, uid=ldap.uid)
            return {"ldap-auth": fields}
        case "wolfRBAC":
            return {"wolf-rbac": {}}
        case "hmacAuth":
            return {"hmac-auth": {}}
        case _:  # basicAuth, or nothing
            return {"basic-auth": {}}


def _present(**fields: Any) -> JsonObject:
    return present(fields)


def present(fields: Mapping[str, Any]) -> JsonObject:
    """Return the fields that are not empty, zero or false."""
    return {name: value for name, value in fields.items() if value}
