"""Certificates of a host: that of its oldest Ingress with TLS, and how clients are verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from apisix_ingress.model import names
from apisix_ingress.model.formats.certificates import read_chain
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from translation.core.builder import Builder
from translation.core.context import Context
from translation.hosts.certificates import KeyPair, covered_names, key_pair
from translation.nginx.fake_certificate import fake_pair
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.servers import Server
from translation.nginx.sources import Source, sources_of_host
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.gateway_fields import AUTHORITY, LARGEST_COUNT
from translation.nginx.tables.values import Values

Certificate: TypeAlias = tuple[KeyPair, ObjectKey]
"""A certificate with its key, and the Secret that they are from."""

ASK_FOR_OTHERS = ", and the key allow-cross-namespace-resources of the ConfigMap is not true; copy it"
"""End of the reason why a Secret of another namespace cannot be used."""

_CA = "ca.crt"
_PAIR = {"tls.crt", "tls.key"}
_NO_PATH, _EVERY_PATH = "^$", ".*"


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """How the clients of a host are verified.

    Attributes:
        values: The annotations that configure it.
        ca: The CA certificates; empty if no client is verified.
        mode: The value of auth-tls-verify-client.
        closed: Why every request is refused; empty if they are not.
        stricter: Whether ingress-nginx would serve them without a certificate instead.
    """

    values: Values
    ca: str
    mode: str
    closed: str = ""
    stricter: bool = False


def is_secure(builder: Builder, nginx: NginxOptions, server: Server) -> bool:
    """Return whether http is redirected to https: an Ingress of the host, or of the wildcard over it, has TLS."""
    if any(source.spec.tls for source in server.sources):
        return True
    if server.host == CATCH_ALL or server.host.startswith("*."):
        return False
    return is_under_secure_wildcard(builder, nginx, server.host)


def is_under_secure_wildcard(builder: Builder, nginx: NginxOptions, host: str) -> bool:
    """Return whether the wildcard over a host has TLS."""
    _, _, parent = host.partition(".")
    over = sources_of_host(builder.view, builder.options, nginx, f"*.{parent}") if parent else []
    return any(source.spec.tls for source in over if not source.canary)


def client_check(builder: Builder, config: Config, server: Server) -> ClientCheck | None:
    """Return how clients are verified by the first Ingress with auth-tls-secret, or None.

    If any Ingress has a Secret that cannot be used, the whole host is closed, as in nginx.
    """
    first: ClientCheck | None = None
    for source in server.every:
        if source.values.has("auth-tls-secret"):
            check = _check_of(builder, config, source)
            if check.closed:
                return check
            first = first or check
    return first


def _check_of(builder: Builder, config: Config, source: Source) -> ClientCheck:
    mode = source.values.text("auth-tls-verify-client")
    mode = mode if mode in ("off", "optional", "optional_no_ca") else "on"
    namespace, _, name = source.values.text("auth-tls-secret").partition("/")
    key = ObjectKey("Secret", namespace, name)
    if not name or "/" in name:
        return ClientCheck(source.values, "", mode, "the value is not namespace/name of a Secret; correct it")
    if namespace != source.meta.namespace and not config.flag("allow-cross-namespace-resources"):
        return ClientCheck(source.values, "", mode, f"{key} is in another namespace{ASK_FOR_OTHERS}")
    secret = builder.view.get(Secret, key)
    if secret is None:
        return ClientCheck(source.values, "", mode, f"{key} does not exist; create it")
    authority = _authority(secret)
    wrong = "" if authority or mode == "off" else f"{key} has no PEM certificate under {_CA}; put the CA there"
    if authority and not AUTHORITY.fits(authority):
        wrong = f"{key} has more under {_CA} than gateways accept, {AUTHORITY.accepts['maxLength']} bytes; shorten it"
    return ClientCheck(source.values, authority, mode, wrong, stricter=secret.data.keys() >= _PAIR)


def _authority(secret: Secret) -> str:
    """Return the CA certificates in a Secret; empty if there are none, or gateways cannot read them."""
    text = secret.data.get(_CA, b"")
    try:
        read_chain(text)
        return text.decode()
    except ValueError:
        return ""


def covered_aliases(builder: Builder, server: Server, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return the other names of a host that its certificate covers."""
    found = _certificate(builder, server) if aliases else None
    return tuple(alias for alias in aliases if found and _covers(found[0], alias))


def add_certificate(
    builder: Builder,
    server: Server,
    aliases: Sequence[str],
    check: ClientCheck | None,
    default: Certificate | None,
    *,
    uncovered: Sequence[str] = (),
) -> None:
    """Add the ssl records of a host; the catch-all server gets that of all hosts without a certificate.

    Args:
        builder: The translation of the host.
        server: The host.
        aliases: Its other names that the certificate covers.
        check: How clients are verified.
        default: The certificate of hosts without one; None if handshakes for these are rejected.
        uncovered: Its other names that the certificate does not cover; clients are verified for these, too.
    """
    name, of_aliases = names.nginx_name(server.host, "tls"), names.nginx_name(server.host, "tls-aliases")
    builder.protect("ssls", names=frozenset({name, of_aliases}))
    if server.host == CATCH_ALL:
        if default:
            # In `snis`, `*` matches only one label; in `sni`, it matches every name.
            _record(builder, name, default[0], {"sni": "*"}, default[1])
        return
    found = _certificate(builder, server)
    client = {"client": _client(check)} if check and check.ca else {}
    if found:
        _record(builder, name, found[0], {"snis": [server.host, *aliases], **client}, found[1])
    elif default and client:
        _record(builder, name, default[0], {"snis": [server.host], **client}, default[1])
    other = default or found
    if other and client and uncovered:
        _record(builder, of_aliases, other[0], {"snis": list(uncovered), **client}, other[1])


def default_certificate(builder: Builder, nginx: NginxOptions) -> Certificate:
    """Return the certificate of hosts without one: the configured one, or a self-signed one."""
    found = _pair(builder, nginx.default_certificate) if nginx.default_certificate else None
    return found or (fake_pair(nginx.seed), ObjectKey("Secret", "", ""))


def _client(check: ClientCheck) -> JsonObject:
    # With patterns the handshake always succeeds, and requests whose path matches none of them get 400, as in nginx.
    insists = check.mode == "on" and not check.values.has("auth-tls-error-page")
    pattern = _NO_PATH if insists else _EVERY_PATH
    depth = min(max(1, check.values.number("auth-tls-verify-depth", 1)), LARGEST_COUNT)
    return {"ca": check.ca, "depth": depth, "skip_mtls_uri_regex": [pattern]}


def _record(builder: Builder, name: str, pair: KeyPair, fields: JsonObject, secret: ObjectKey) -> None:
    labels = {"meta_secret_namespace": secret.namespace, "meta_secret_name": secret.name}
    body: JsonObject = {
        "id": builder.view.record_id("ssls", name),
        "cert": pair.certificate,
        "key": pair.key,
        "status": 1,
        "labels": names.owner_labels(builder.options.controller_name, labels),
    }
    builder.record("ssls", name, body | fields)


def _certificate(builder: Builder, server: Server) -> Certificate | None:
    """Return the certificate of a host; None means the default one, as for an invalid or missing Secret."""
    for source in server.sources:
        if source.spec.tls:
            key = _secret_of(builder, server.host, source)
            found = _pair(builder, key) if key else None
            return found if found and _covers(found[0], server.host) else None
    return None


def _secret_of(builder: Builder, host: str, source: Source) -> ObjectKey | None:
    if listed := source.spec.tls_by_host.get(host):
        return ObjectKey("Secret", source.meta.namespace, listed.secret_name) if listed.secret_name else None
    for name in dict.fromkeys(entry.secret_name for entry in source.spec.tls if entry.secret_name):
        key = ObjectKey("Secret", source.meta.namespace, name)
        found = _pair(builder, key)
        if found and _covers(found[0], host):
            return key
    return None


def _pair(builder: Builder, key: ObjectKey) -> Certificate | None:
    secret = builder.view.get(Secret, key)
    if secret is None:
        return None
    scratch = Context("Secret", key.namespace, builder.view, builder.options)
    pair = key_pair(scratch, secret, "")
    return (pair, key) if pair else None


def _covers(pair: KeyPair, host: str) -> bool:
    covered = covered_names(pair.certificate)
    return host in covered or (not host.startswith("*.") and f"*.{host.partition('.')[2]}" in covered)
