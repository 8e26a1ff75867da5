"""The ConfigMap of ingress-nginx: its defaults, and the verdict on each key. It is read live."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from translation.nginx.tables.judges import ERRORS
from translation.nginx.tables.values import LARGEST, boolean, integer, networks, size
from translation.nginx.tables.verdicts import EXACT, Verdict, approximate, no_effect, refused

DEFAULTS: Mapping[str, str] = {
    "ssl-redirect": "true",
    "force-ssl-redirect": "false",
    "preserve-trailing-slash": "false",
    "use-port-in-redirects": "false",
    "http-redirect-code": "308",
    "no-tls-redirect-locations": "/.well-known/acme-challenge",
    "no-auth-locations": "/.well-known/acme-challenge",
    "hsts": "true",
    "hsts-include-subdomains": "true",
    "hsts-max-age": "31536000",
    "hsts-preload": "false",
    "use-forwarded-headers": "false",
    "compute-full-forwarded-for": "false",
    "enable-real-ip": "false",
    "forwarded-for-header": "X-Forwarded-For",
    "forwarded-host-header": "X-Forwarded-Host",
    "proxy-real-ip-cidr": "0.0.0.0/0",
    "generate-request-id": "true",
    "proxy-body-size": "1m",
    "proxy-connect-timeout": "5",
    "proxy-send-timeout": "60",
    "proxy-read-timeout": "60",
    "proxy-next-upstream": "error timeout",
    "proxy-next-upstream-tries": "3",
    "proxy-next-upstream-timeout": "0",
    "proxy-buffering": "off",
    "proxy-request-buffering": "on",
    "limit-req-status-code": "503",
    "limit-conn-status-code": "503",
    "service-upstream": "false",
    "load-balance": "round_robin",
    "upstream-hash-by": "",
    "whitelist-source-range": "",
    "denylist-source-range": "",
    "block-cidrs": "",
    "block-user-agents": "",
    "block-referers": "",
    "allow-snippet-annotations": "false",
    "annotations-risk-level": "High",
    "allow-cross-namespace-resources": "false",
    "global-allowed-response-headers": "",
    "global-auth-url": "",
    "global-auth-method": "",
    "global-auth-signin": "",
    "global-auth-signin-redirect-param": "",
    "global-auth-response-headers": "",
    "global-auth-request-redirect": "",
    "global-auth-snippet": "",
    "global-auth-cache-key": "",
    "global-auth-cache-duration": "200 202 401 5m",
    "global-auth-always-set-cookie": "false",
    "add-headers": "",
    "proxy-set-headers": "",
    "hide-headers": "",
    "custom-http-errors": "",
    "disable-proxy-intercept-errors": "false",
    "proxy-add-original-uri-header": "false",
    "relative-redirects": "false",
    "use-gzip": "false",
    "enable-underscores-in-headers": "false",
    "ignore-invalid-headers": "true",
    "gzip-level": "1",
    "gzip-min-length": "256",
    "gzip-types": (
        "application/atom+xml application/javascript application/x-javascript application/json application/rss+xml "
        "application/vnd.ms-fontobject application/x-font-ttf application/x-web-app-manifest+json "
        "application/xhtml+xml application/xml font/opentype image/svg+xml image/x-icon text/css text/javascript "
        "text/plain text/x-component"
    ),
    "ssl-reject-handshake": "false",
    "proxy-ssl-location-only": "false",
    "proxy-cookie-domain": "off",
    "proxy-cookie-path": "off",
    "proxy-redirect-from": "off",
    "proxy-redirect-to": "off",
}
"""The supported keys with their defaults."""


@dataclass(frozen=True, slots=True)
class LeanDefault:
    """The default of a key with `ingress_nginx.fidelity: lean`.

    Attributes:
        value: The default.
        verdict: The difference from ingress-nginx.
        restore: How to get the behaviour of ingress-nginx where it is needed.
    """

    value: str
    verdict: Verdict
    restore: str


LEAN: Mapping[str, LeanDefault] = {
    "proxy-buffering": LeanDefault(
        "on",
        approximate("The gateway buffers responses, so a client gets small parts of a response later."),
        'Set the annotation `proxy-buffering: "off"`, or send `X-Accel-Buffering: no` with a response.',
    ),
}
"""What `lean` gives up: behaviour that costs the gateway much and that few applications need; never a protection."""

LEAN_DEFAULTS: Mapping[str, str] = {**DEFAULTS, **{key: each.value for key, each in LEAN.items()}}

_NATURAL = range(LARGEST + 1)
_PERMITTED: Mapping[str, Container[int]] = {
    "http-redirect-code": frozenset({301, 302, 307, 308}),
    "limit-req-status-code": range(400, 600),
    "limit-conn-status-code": range(400, 600),
}
"""The numbers that ingress-nginx, or nginx itself, accepts."""

_GATEWAY_WIDE = no_effect("It is a setting of the whole gateway (config.yaml), not of routes.")
_STRICT = no_effect("It concerns ingress-nginx's own webhook.")

_VERDICTS: Mapping[str, Verdict] = {
    "compute-full-forwarded-for": approximate("X-Forwarded-For has the address of the client only, not the chain."),
    "custom-http-errors": ERRORS,
    "ssl-reject-handshake": EXACT,
    "add-headers": EXACT,
    "server-snippet": refused("Nginx configuration is never executed.", protects=True),
    "location-snippet": refused("Nginx configuration is never executed.", protects=True),
    "http-snippet": refused("Nginx configuration is never executed.", protects=True),
    "main-snippet": refused("Nginx configuration is never executed.", protects=True),
    "stream-snippet": refused("Nginx configuration is never executed.", protects=True),
    "enable-modsecurity": refused("Gateways have no ModSecurity.", protects=True),
    "enable-owasp-modsecurity-crs": refused("Gateways have no ModSecurity.", protects=True),
    "proxy-set-headers": approximate(
        "A header that ingress-nginx would send twice is sent once: Host as in the request, others as in the ConfigMap."
    ),
    "annotation-value-word-blocklist": approximate("It also applies to Ingresses that exist already."),
    "strict-validate-path-type": _STRICT,
    "limit-rate": approximate("Responses are not slowed down."),
    "limit-rate-after": approximate("Responses are not slowed down."),
    "proxy-buffer-size": approximate("Larger response headers need proxy_buffer_size in the gateway's config.yaml."),
    "large-client-header-buffers": approximate("Sizes of request headers are a setting of the whole gateway."),
    "client-header-buffer-size": approximate("Sizes of request headers are a setting of the whole gateway."),
    "enable-underscores-in-headers": approximate("Header names with underscores are a setting of the whole gateway."),
    "ignore-invalid-headers": approximate(
        "Headers in HTTP/2, and those whose name has a character that HTTP does not allow, such as `@`, are dropped."
    ),
    "allow-backend-server-header": approximate("The gateway sets the Server header."),
    "use-http2": approximate("HTTP/2 is a setting of the whole gateway."),
    "use-proxy-protocol": approximate("The PROXY protocol is a setting of the gateway's listeners."),
}

_TAKEN: Mapping[str, Verdict] = {**dict.fromkeys(DEFAULTS, EXACT), **_VERDICTS}


def named_keys() -> tuple[str, ...]:
    """Return the keys with their own verdict."""
    return tuple(_VERDICTS)


def key_verdict(key: str, value: str) -> Verdict:
    """Return the verdict on a key of the ConfigMap, by its value."""
    if value == DEFAULTS.get(key):
        return EXACT
    if boolean(value) is False and _TAKEN.get(key, EXACT).protects:
        return EXACT
    return _TAKEN.get(key, _GATEWAY_WIDE)


@dataclass(frozen=True, slots=True)
class Config:
    """The values of the ConfigMap. An invalid value is ignored."""

    given: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=lambda: DEFAULTS, repr=False)

    def text(self, key: str) -> str:
        """Return a text, or its default."""
        return self.given.get(key, self.defaults.get(key, ""))

    def flag(self, key: str) -> bool:
        """Return a boolean, or its default."""
        found = boolean(self.given.get(key, ""))
        return boolean(self.defaults[key]) is True if found is None else found

    def number(self, key: str) -> int:
        """Return an integer, or its default if the value is not permitted."""
        found = integer(self.given.get(key, ""))
        permitted = _PERMITTED.get(key, _NATURAL)
        return int(self.defaults[key]) if found is None or found not in permitted else found

    def bytes(self, key: str) -> int:
        """Return a size in bytes, or its default."""
        found = size(self.given.get(key, ""))
        default = size(self.defaults[key])
        return (default or 0) if found is None else found

    def networks(self, key: str) -> tuple[str, ...]:
        """Return a list of networks; a list with an invalid one is ignored."""
        value = self.given.get(key, "")
        return (networks(value) or ()) if value else ()

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts separated by commas."""
        return tuple(part.strip() for part in self.text(key).split(",") if part.strip())

    def verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """Yield the verdict on each key that is set."""
        for key in sorted(self.given):
            yield key, key_verdict(key, self.given[key])
