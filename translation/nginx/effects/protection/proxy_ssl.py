"""TLS to backends with proxy-ssl-secret: if a certificate that has to be verified cannot be, the path is closed."""

from __future__ import annotations

import re

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Secret
from translation.nginx.effects.balancing.backends import client_certificate, scheme_of, verifies
from translation.nginx.effects.branches import Site
from translation.nginx.effects.own_requests import own_requests
from translation.nginx.functions.attached import Function
from translation.nginx.functions.proxy_ssl import BACKEND_TLS

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_NAME = "upstream_balancer"
"""The name that ingress-nginx expects in certificates without proxy-ssl-name."""


def backend_tls(site: Site, scheme: str) -> tuple[Function, ...]:
    """Return the function for TLS to the backend of requests with a scheme, if it is needed."""
    if (scheme_of(site) or scheme) != "https" or not client_certificate(site):
        return ()
    values, wanted = site.values, JsonObject()
    if verifies(site):
        depth = max(0, values.number("proxy-ssl-verify-depth", 1))
        wanted = {"ca": _authorities(site), "depth": depth, "name": values.text("proxy-ssl-name") or _NAME}
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
    namespace, _, name = site.values.text("proxy-ssl-secret").partition("/")
    secret = site.builder.view.get(Secret, ObjectKey("Secret", namespace, name))
    text = secret.data.get("ca.crt", b"").decode("ascii", errors="replace") if secret else ""
    return ["".join(found.split()) for found in _CERTIFICATE.findall(text)]
