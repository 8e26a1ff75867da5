"""Plugins that identify the consumer."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import Any

import orjson

from e2e.devgateway.adminapi.record_kinds import RESOURCES, unseal
from e2e.devgateway.dataplane.request_context import Context, Outgoing
from e2e.devgateway.plugins.request_plugins import Act, Runtime, json_reply

Body = dict[str, Any]


def _identify(plugin: str, credential: str, runtime: Runtime) -> tuple[str, Body] | None:
    """Return (consumer, the consumer's own configuration of the plugin), or None."""
    name = runtime.references.consumer_of(plugin, credential)
    if name is None:
        return None
    for key, record in runtime.store.kind("consumers").items():
        if key == name or key.startswith(f"{name}/"):
            conf = {"plugins": {plugin: dict(record.value.get("plugins", {}).get(plugin, {}))}}
            unseal(RESOURCES["consumers"], conf)
            if credential in conf["plugins"][plugin].values():
                return name, conf["plugins"][plugin]
    return None


def _attach(name: str, context: Context, runtime: Runtime) -> None:
    record = runtime.store.kind("consumers").get(name)
    context.consumer = record.value if record else {}
    context.consumer_name = name
    context.set_header("X-Consumer-Username", name)


def _challenge(text: str, challenge: str) -> Outgoing:
    return json_reply(401, {"message": text}, ("WWW-Authenticate", challenge))


def _anonymous(conf: Body, context: Context, runtime: Runtime) -> bool:
    name = conf.get("anonymous_consumer")
    if name is not None and name in runtime.store.kind("consumers"):
        _attach(name, context, runtime)
        return True
    return False


async def key_auth(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    header, argument = conf.get("header", "apikey"), conf.get("query", "apikey")
    challenge = f'apikey realm="{conf.get("realm", "key")}"'
    key = context.request.get(header) or context.args.get(argument)
    found = _identify("key-auth", key, runtime) if key else None
    if found is None:
        if _anonymous(conf, context, runtime):
            return None
        return _challenge(f"{'Invalid' if key else 'Missing'} API key in request", challenge)
    if conf.get("hide_credentials"):
        context.remove_header(header)
    _attach(found[0], context, runtime)
    return None


async def basic_auth(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    challenge = f'Basic realm="{conf.get("realm", "basic")}"'
    header = context.request.get("authorization")
    user, _, password = _decode_basic(header or "").partition(":")
    found = _identify("basic-auth", user, runtime) if user else None
    if found is None or found[1].get("password") != password:
        if _anonymous(conf, context, runtime):
            return None
        return _challenge("Invalid user authorization" if header else "Missing authorization in request", challenge)
    if conf.get("hide_credentials"):
        context.remove_header("authorization")
    _attach(found[0], context, runtime)
    return None


def _decode_basic(header: str) -> str:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


async def jwt_auth(conf: Body, context: Context, runtime: Runtime) -> Outgoing | None:
    """Verify HMAC tokens; other algorithms are rejected."""
    challenge = f'Bearer realm="{conf.get("realm", "jwt")}"'
    header = conf.get("header", "authorization")
    token = context.request.get(header) or context.args.get(conf.get("query", "jwt"))
    token = token or context.cookies.get(conf.get("cookie", "jwt"))
    if not token:
        if _anonymous(conf, context, runtime):
            return None
        return _challenge("Missing JWT token in request", challenge)
    found = _verify(token.removeprefix("Bearer ").removeprefix("bearer "), conf, runtime)
    if isinstance(found, str):
        return None if _anonymous(conf, context, runtime) else _challenge(found, challenge)
    if conf.get("hide_credentials"):
        context.remove_header(header)
    _attach(found[0], context, runtime)
    return None


def _verify(token: str, conf: Body, runtime: Runtime) -> tuple[str, Body] | str:
    """Return the consumer, or the error."""
    try:
        head, payload, signature = token.split(".")
        claims = orjson.loads(_unpad(payload))
        algorithm = orjson.loads(_unpad(head))["alg"]
    except (ValueError, KeyError, binascii.Error):
        return "JWT token invalid"
    found = _identify("jwt-auth", str(claims.get(conf.get("key_claim_name", "key"))), runtime)
    if found is None:
        return "Invalid user key in JWT token"
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}.get(algorithm)
    secret = found[1].get("secret", "").encode()
    if found[1].get("base64_secret"):
        secret = base64.b64decode(secret)
    if digest is None or algorithm != found[1].get("algorithm", "HS256"):
        return "failed to verify jwt"
    want = hmac.new(secret, f"{head}.{payload}".encode(), digest).digest()
    now = time.time() - found[1].get("lifetime_grace_period", 0)
    if not hmac.compare_digest(want, _unpad(signature)) or claims.get("exp", now + 1) <= now:
        return "failed to verify jwt"
    return "failed to verify jwt" if claims.get("nbf", 0) > time.time() else found


def _unpad(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


AUTH_ACTS: dict[str, Act] = {"key-auth": key_auth, "basic-auth": basic_auth, "jwt-auth": jwt_auth}
