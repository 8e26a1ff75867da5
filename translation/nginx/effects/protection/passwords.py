"""Passwords of users in a Secret (auth-secret): one record for each Secret of a host, which its routes refer to."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from translation.nginx.certificates import ASK_FOR_OTHERS
from translation.nginx.effects.branches import Passwords, Site
from translation.nginx.effects.shared_data import shared

_AUTH_FILE = "auth"
_MAP = "auth-map"

_QUICK = ValuePattern(
    r"(?s)\{(?:PLAIN|SHA|SSHA)\}.*|\$(?:apr1|1)\$.*|\$[56]\$(?:rounds=[0-9]{1,5}\$)?[^=]*|\$2[abxy]\$(?:0[0-9]|1[0-2])\$.*"
    r"|\$g?y\$j[0-9]T\$.*|[^${_].*"
)
"""Password hashes that a gateway checks quickly; others let the user choose how long a request occupies a worker."""


def passwords(site: Site) -> Passwords:
    """Return the passwords for a location, and add their record."""
    values = site.values
    if values.text("auth-type") != "basic":
        return Passwords(shut="auth-type: gateways do not support digest")
    name = values.text("auth-secret")
    namespace, _, rest = name.rpartition("/")
    foreign = bool(namespace) and namespace != site.namespace
    key = ObjectKey("Secret", namespace or site.namespace, rest)
    if foreign and not site.config.flag("allow-cross-namespace-resources"):
        return Passwords(closed=f"auth-secret: {key} is in another namespace{ASK_FOR_OTHERS}")
    kind = "map" if values.text("auth-secret-type") == _MAP else "file"
    known, found = site.services.passwords, (kind, key)
    if found not in known:
        known[found] = _record(site, key, kind) if rest else Passwords(closed="auth-secret: it names no Secret")
    return known[found]


def _record(site: Site, key: ObjectKey, kind: str) -> Passwords:
    """Add the record with the users of a Secret."""
    builder = site.builder
    secret = builder.view.get(Secret, key)
    if secret is None:
        return Passwords(closed=f"auth-secret: {key} does not exist; create it")
    if kind == "file" and _AUTH_FILE not in secret.data:
        return Passwords(closed=f"auth-secret: {key} has no key {_AUTH_FILE}; put the users there")
    users = _of_map(secret) if kind == "map" else _of_file(secret)
    if builder.options.plugins == "reviewed" and not all(map(_QUICK.fits, users.values())):
        why = "auth-secret: a password hash takes too long to check; use bcrypt with a cost of at most 12"
        return Passwords(shut=why)
    return Passwords(shared(site, key, f"{kind}-passwords", lambda: {"users": users}))


def _of_map(secret: Secret) -> dict[str, str]:
    return {user: text.decode(errors="replace").strip() for user, text in sorted(secret.data.items())}


def _of_file(secret: Secret) -> dict[str, str]:
    """Return the users in a file of htpasswd; the first line of a user counts."""
    lines = secret.data[_AUTH_FILE].decode(errors="replace").splitlines()
    pairs = (line.strip().split(":") for line in lines if ":" in line and not line.startswith("#"))
    users: dict[str, str] = {}
    for user, text, *_ in pairs:
        users.setdefault(user, text)
    return users
