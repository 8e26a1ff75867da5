"""TLS to backends with proxy-ssl-secret: if a certificate that has to be verified cannot be, the path is closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from translation.core.builder import Builder
from translation.nginx.effects.balancing.backends import client_certificate, scheme_of, verifies
from translation.nginx.effects.branches import Site
from translation.nginx.effects.own_requests import own_requests
from translation.nginx.effects.shared_data import shared
from translation.nginx.functions.attached import Function
from translation.nginx.functions.proxy_ssl import BACKEND_TLS
from translation.nginx.servers import Location
from translation.nginx.sources import Source
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.gateway_fields import LARGEST_COUNT
from translation.nginx.tables.values import Values

_CERTIFICATE = TextPattern(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_BY_TLS = ("HTTPS", "GRPCS", "AUTO_HTTP")
_PREFIX = "proxy-ssl-"
_NAME = "upstream_balancer"
"""The name that ingress-nginx expects in certificates without proxy-ssl-name."""


def host_wide(builder: Builder, config: Config, sources: Iterable[Source]) -> Source | None:
    """Return the Ingress whose proxy-ssl annotations apply to all locations of a host without their own.

    As in ingress-nginx, it is the first one whose Secret has a CA, unless proxy-ssl-location-only is true.
    """
    if config.flag("proxy-ssl-location-only"):
        return None
    for source in sources:
        if (text := _ca_of(source.values, builder)) and _CERTIFICATE.found(text):
            return source
    return None


def inheriting(location: Location, wide: Source | None) -> Location:
    """Return a location with the proxy-ssl annotations of its host, if it has none and uses TLS to its backend.

    Those of another namespace do not apply: its backends would get requests with the certificate of that namespace.
    """
    source = location.source
    if source is None or wide is None or source.meta.namespace != wide.meta.namespace or not may_inherit(source):
        return location
    own = {name: text for name, text in source.values.given.items() if not name.startswith(_PREFIX)}
    added = {name: text for name, text in wide.values.given.items() if name.startswith(_PREFIX)}
    return replace(location, source=replace(source, values=Values({**own, **added})))


def may_inherit(source: Source) -> bool:
    """Return whether an Ingress asks its backends by TLS and has no Secret of its own for it."""
    return not source.values.has("proxy-ssl-secret") and source.values.text("backend-protocol").upper() in _BY_TLS


def backend_tls(site: Site, scheme: str) -> tuple[Function, ...]:
    """Return the function for TLS to the backend of requests with a scheme, if it is needed."""
    if (scheme_of(site) or scheme) != "https" or not client_certificate(site):
        return ()
    values, wanted = site.values, JsonObject()
    if verifies(site):
        depth = min(max(0, values.number("proxy-ssl-verify-depth", 1)), LARGEST_COUNT)
        authorities = shared(site, _secret_of(values), "authorities", lambda: {"ca": _authorities(site)})
        wanted = {"ca": authorities, "depth": depth, "name": values.text("proxy-ssl-name") or _NAME}
    elif values.has("proxy-ssl-name") and values.text("proxy-ssl-server-name") == "on":
        wanted = {"name": values.text("proxy-ssl-name")}
    return (Function(BACKEND_TLS, {"tls": wanted}),)


def is_unverifiable(site: Site) -> bool:
    """Return whether requests would reach a backend without the configured verification."""
    if not verifies(site):
        return False
    # Functions send their own requests without it, and gateways have none for gRPC.
    return scheme_of(site) == "grpcs" or bool(own_requests(site)) or not _authorities(site)


def _authorities(site: Site) -> list[str]:
    """Return the CA certificates in DER, each as one line of base64."""
    return ["".join(found[1].split()) for found in _CERTIFICATE.finditer(_ca_of(site.values, site.builder))]


def _secret_of(values: Values) -> ObjectKey:
    namespace, _, name = values.text("proxy-ssl-secret").partition("/")
    return ObjectKey("Secret", namespace, name)


def _ca_of(values: Values, builder: Builder) -> str:
    """Return the text of `ca.crt` in the Secret of proxy-ssl-secret; empty if there is none."""
    key = _secret_of(values)
    secret = builder.view.get(Secret, key) if key.name else None
    return secret.data.get("ca.crt", b"").decode("ascii", errors="replace") if secret else ""
