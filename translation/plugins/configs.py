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
from translation.plugins.mirrors import PLUGIN as MIRROR
from translation.plugins.mirrors import with_raw_path
from translation.plugins.policy import judge
from translation.plugins.protos import PLUGIN as TRANSCODE
from translation.plugins.protos import with_proto

if TYPE_CHECKING:
    from crds.v2.common import Plugin
    from crds.v2.route import Authentication

_FROM = {"valueFrom"}

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
    """Report what the settings reject in a plugin; return its configuration as a gateway gets it.

    Shared names contain the namespace.

    Args:
        scope: The object that has the plugin.
        name: Of the plugin.
        config: Its configuration, merged with its Secret; it is not changed.
        path: The field that the plugin comes from.
        config_path: The field with the configuration; empty if the object has no such field.
    """
    check_code(scope, name, config, path)
    # Global rules affect every team: RBAC decides who may write them.
    if scope.options.plugins == "reviewed" and scope.kind != "ApisixGlobalRule":
        config = judge(scope, name, config, path, config_path)
    if name == TRANSCODE:
        return with_proto(scope, config)
    return with_raw_path(config) if name == MIRROR else config


def _config(scope: Context, plugin: Plugin, path: str) -> JsonObject:
    config = plugin.config or {}
    if names_secret(config):
        config = _resolved(scope, config, f"{path}.config")
    if not plugin.secret_ref:
        return config
    secret = scope.secret(plugin.secret_ref, f"{path}.secretRef")
    if secret is None or scope.is_too_large(secret, secret.data, f"{path}.secretRef"):
        return config
    return merged(scope, config, secret, f"{path}.secretRef")


def names_secret(config: object) -> bool:
    """Return whether a value anywhere in a configuration comes from a Secret, by `valueFrom`."""
    todo = [config]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if item.keys() == _FROM:
                return True
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return False


def _resolved(scope: Context, value: Any, path: str) -> Any:
    """Return a copy of a configuration with the values of Secrets in place of references to them."""
    if isinstance(value, list):
        return [_resolved(scope, item, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if value.keys() == _FROM:
        return _value_of(scope, value["valueFrom"], f"{path}.valueFrom")
    return {name: _resolved(scope, item, f"{path}.{name}") for name, item in value.items()}


def _value_of(scope: Context, source: object, path: str) -> str:
    match source:
        case {"secretKeyRef": {"name": str(name), "key": str(key), **more}, **others} if not more and not others:
            secret = scope.secret(name, f"{path}.secretKeyRef.name")
        case _:
            scope.error("InvalidSpec", path, "must be secretKeyRef with name and key, and nothing else")
            return ""
    if secret is None or scope.is_too_large(secret, (key,), path):
        return ""
    if key not in secret.data:
        scope.error("InvalidSecret", path, f"{secret.meta.key} has no key {key}; add it or correct the name")
        return ""
    return secret_text(scope, secret, key, path)


def secret_text(scope: Context, secret: Secret, key: str, path: str) -> str:
    """Return a value of a Secret as text; what is wrong with it is reported."""
    try:
        value = secret.data[key].decode()
    except UnicodeDecodeError:
        scope.error("InvalidSecret", path, f"{secret.meta.key}: the value of {key} is not UTF-8; replace it")
        return ""
    check_secret(scope, secret, key, value, path)
    return value


def merged(scope: Context, config: JsonObject, secret: Secret, path: str) -> JsonObject:
    """Return a copy of a configuration, overridden by the values of a Secret; a dot in a key leads into a mapping."""
    result = copy.deepcopy(config)
    for key in sorted(secret.data):
        _put(result, key.split("."), secret_text(scope, secret, key, path))
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
