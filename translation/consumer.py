"""ApisixConsumer → consumer: its credentials, inline or from a Secret, its plugins and its group.

Bodies have the format of current gateways; they differ from 1.8 in hmac-auth, whose `key_id` was `access_key`. A Secret
is parsed into the model of the inline value, so that the same rules apply to both. No message contains a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from apisix_ingress.model import names
from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject, Secret
from apisix_ingress.model.records import Record
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2 import consumer as crd
from crds.v2.common import SpecPart
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import class_is_ours
from translation.core.text_checks import check_object, check_secret
from translation.plugins.configs import Plugins, present, review, translate_plugins

_USERNAME = ValuePattern(r"[a-zA-Z0-9_-]{1,256}")
"""The usernames that a gateway accepts (APISIX consumer schema)."""

_NUMBER = ValuePattern(r"\+?[0-9]{1,18}")
_LEAST = {"exp": 1, "lifetime_grace_period": 0, "clock_skew": 0, "max_req_body": 0}
"""Numbers and their minimum. 1.8 silently replaced an invalid one, so it must not make an object fail."""

_FLAGS = frozenset({"base64_secret", "keep_headers", "encode_uri_params", "validate_request_body"})
_LISTS = frozenset({"signed_headers"})
_WORDS = frozenset({"algorithm"})
"""Strings with few valid values: surrounding white space is ignored."""


@dataclass(frozen=True, slots=True)
class _Method:
    """One way to authenticate.

    Attributes:
        name: Field of `authParameter`.
        attribute: The same in the model.
        plugin: Plugin of the gateway.
        model: The inline value.
        body: Value → configuration of the plugin.
        inline: Defaults of an inline value; they equal those of 1.8, so that its records are adopted.
        from_secret: Defaults of a Secret.
    """

    name: str
    attribute: str
    plugin: str
    model: type[SpecPart]
    body: Callable[[Any], JsonObject]
    inline: JsonObject = field(default_factory=dict)
    from_secret: JsonObject = field(default_factory=dict)


def translate_consumer(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the consumer of an ApisixConsumer; without credentials no request can authenticate as it."""
    draft = Builder(obj.meta, view, options)
    username = names.consumer_name(draft.namespace, obj.meta.name, options.consumer_names)
    draft.protect("consumers", ids=frozenset({username}))
    _check_username(draft, username)
    check_object(draft, obj)
    try:
        spec = parse_spec(crd.ApisixConsumerSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    body: JsonObject = {
        "username": username,
        "desc": names.DESC,
        "labels": names.owner_labels(options.controller_name, obj.meta.labels),
        "plugins": _plugins(draft, spec),
    }
    meant: dict[RecordKey, str] = {}
    if spec.group:
        name = names.object_name(draft.namespace, spec.group)
        body["group_id"] = _group(draft, ObjectKey("ApisixConsumerGroup", draft.namespace, spec.group), name)
        meant = {RecordKey("consumer_groups", body["group_id"]): name}
    draft.add(Record(RecordKey("consumers", username), username, body, meant=meant))
    return draft.finish()


def _group(draft: Builder, key: ObjectKey, name: str) -> str:
    """Return the id of a consumer group, or report that no group of this class has that name."""
    found = draft.custom(key)
    if found is None:
        draft.missing("ConsumerGroupNotFound", "spec.group", key)
    elif not class_is_ours(found, draft.view, draft.options):
        draft.foreign("ConsumerGroupNotFound", "spec.group", found)
    return draft.refer("consumer_groups", name)


def _check_username(draft: Builder, username: str) -> None:
    if not _USERNAME.fits(username):
        message = (
            f"the username {username} is invalid: use letters, digits, - and _, at most 256 characters with the"
            " namespace; choose another name"
        )
        draft.degrade("InvalidUsername", "metadata.name", message)


def _plugins(draft: Builder, spec: crd.ApisixConsumerSpec) -> Plugins:
    methods = [method for method in _METHODS if getattr(spec.auth_parameter, method.attribute, None)]
    credentials = _credentials(draft, spec.auth_parameter, methods[0]) if methods else None
    for method in methods[1:]:
        message = f"is ignored: {methods[0].name} takes precedence; remove one of them"
        draft.warn("CredentialsTwice", f"spec.authParameter.{method.name}", message)
    plugins = translate_plugins(draft, spec.plugins, "spec.plugins")
    if methods and methods[0].plugin in plugins:
        message = f"plugin {methods[0].plugin} is ignored: spec.authParameter takes precedence; remove one of them"
        draft.warn("PluginTwice", "spec.plugins", message)
    if not methods and not plugins:
        draft.warn(
            "NoCredentials", "spec.authParameter", "is missing: no request can authenticate as this consumer; add it"
        )
    return plugins | {methods[0].plugin: credentials} if credentials is not None else plugins


def _credentials(draft: Builder, parameter: Any, method: _Method) -> JsonObject | None:
    """Return the plugin configuration, or None after an error. An inline value takes precedence over a Secret."""
    source: crd.Credential = getattr(parameter, method.attribute)
    here = f"spec.authParameter.{method.name}"
    inline = getattr(source, "value", None)
    if inline is not None:
        path, value, defaults = f"{here}.value", inline, method.inline
    else:
        path, defaults = f"{here}.secretRef.name", method.from_secret
        secret = draft.secret(source.secret_name, path)
        value = _read(draft, method.model, secret, path) if secret else None
    if value is None:
        return None
    if isinstance(value, crd.JwtAuthValue):
        _check_jwt(draft, value, path)
    config = defaults | _with_right_numbers(draft, method.body(value), path)
    return review(draft, method.plugin, config, path)


def _read(draft: Builder, model: type[SpecPart], secret: Secret, path: str) -> SpecPart | None:
    """Return the values of a Secret as the model of an inline value, or None after an error."""
    values: JsonObject = {}
    keys = [info.alias or name for name, info in model.model_fields.items()]
    if draft.is_too_large(secret, keys, path):
        return None
    for key in keys:
        if key in secret.data:
            try:
                value = _typed(key, secret.data[key].decode())
            except UnicodeDecodeError:
                draft.error("InvalidSecret", path, f"{secret.meta.key}: the value of {key} is not UTF-8; replace it")
                return None
            check_secret(draft, secret, key, secret.data[key].decode(), path)
            values |= {} if value is None else {key: value}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            draft.error("InvalidSecret", path, f"{secret.meta.key}: {_complaint(detail)}")
        return None


def _typed(key: str, text: str) -> Any:
    """Return the value of a key in the type of its field, None for an empty number or flag.

    A string that is not a number becomes a number out of range.
    """
    if key in _FLAGS | _LEAST.keys() and not text.strip():
        return None
    if key in _FLAGS:
        return {"true": True, "false": False}.get(text.strip(), text)
    if key in _LISTS:
        return [item.strip() for item in text.split(",") if item.strip()]
    if key in _LEAST:
        return int(text) if _NUMBER.fits(text.strip()) else _LEAST[key] - 1
    return text.strip() if key in _WORDS else text


def _complaint(detail: Mapping[str, Any]) -> str:
    match detail["type"]:
        case "rule":
            return str(detail["ctx"]["text"])
        case "bool_type":
            return f"the value of {detail['loc'][0]} must be true or false; replace it"
        case _:
            return f"key {detail['loc'][0]} is missing; add it"


def _check_jwt(draft: Builder, value: crd.JwtAuthValue, path: str) -> None:
    """Warn about credentials that current gateways reject; older ones generated a secret."""
    shared = value.algorithm in crd.SHARED_KEY_ALGORITHMS
    needed = "secret" if shared else "public_key"
    if not getattr(value, needed):
        algorithm = value.algorithm or "HS256"
        draft.warn("JwtKeyMissing", path, f"has no {needed}, which current gateways require for {algorithm}; add it")


def _with_right_numbers(draft: Builder, body: JsonObject, path: str) -> JsonObject:
    """Return a configuration without the numbers that a gateway rejects, with a warning for each."""
    wrong = [key for key, least in _LEAST.items() if body.get(key, least) < least]
    for key in wrong:
        message = f"{key} must be an integer of at least {_LEAST[key]}; the default is used"
        draft.warn("InvalidNumber", path, message)
    return {key: value for key, value in body.items() if key not in wrong}


def _key_auth(value: crd.KeyAuthValue) -> JsonObject:
    return {"key": value.key}


def _basic_auth(value: crd.BasicAuthValue) -> JsonObject:
    return {"username": value.username, "password": value.password}


def _jwt_auth(value: crd.JwtAuthValue) -> JsonObject:
    body: JsonObject = {"key": value.key} | _present_fields(
        value, "secret", "public_key", "private_key", "algorithm", "base64_secret", "lifetime_grace_period"
    )
    return body if value.exp is None else body | {"exp": value.exp}


def _wolf_rbac(value: crd.WolfRbacValue) -> JsonObject:
    return _present_fields(value, "server", "appid", "header_prefix")


def _hmac_auth(value: crd.HmacAuthValue) -> JsonObject:
    body = {"key_id": value.key_id or value.access_key, "secret_key": value.secret_key}
    body |= _present_fields(value, "algorithm", "clock_skew", "keep_headers", "validate_request_body", "max_req_body")
    body |= present({"signed_headers": list(value.signed_headers)})
    # The gateway's default is true, so false has to be sent.
    return body if value.encode_uri_params is None else body | {"encode_uri_params": value.encode_uri_params}


def _ldap_auth(value: crd.LdapAuthValue) -> JsonObject:
    return {"user_dn": value.user_dn}


def _present_fields(value: SpecPart, *fields: str) -> JsonObject:
    return present({name: getattr(value, name) for name in fields})


_JWT_DEFAULTS: JsonObject = {"exp": 86400}

_METHODS = (
    _Method("keyAuth", "key_auth", "key-auth", crd.KeyAuthValue, _key_auth),
    _Method("basicAuth", "basic_auth", "basic-auth", crd.BasicAuthValue, _basic_auth),
    _Method(
        "jwtAuth",
        "jwt_auth",
        "jwt-auth",
        crd.JwtAuthValue,
        _jwt_auth,
        inline=_JWT_DEFAULTS | {"algorithm": "HS256"},
        from_secret=_JWT_DEFAULTS,
    ),
    _Method("wolfRBAC", "wolf_rbac", "wolf-rbac", crd.WolfRbacValue, _wolf_rbac),
    _Method(
        "hmacAuth",
        "hmac_auth",
        "hmac-auth",
        crd.HmacAuthValue,
        _hmac_auth,
        from_secret={"algorithm": "hmac-sha256", "encode_uri_params": True},
    ),
    _Method("ldapAuth", "ldap_auth", "ldap-auth", crd.LdapAuthValue, _ldap_auth),
)
"""In order of precedence (v1-behaviour.md §2.10)."""
