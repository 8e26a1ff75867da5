"""The verdict table of annotations: every annotation of ingress-nginx 1.15, with the effect of its value.

`migrate`, the documents and the provider all use this table. A row defines which values are valid, the outcome of an
invalid one (observed on a live controller), and the verdict on a valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from translation.nginx.tables.judges import (
    BUFFERS,
    CACHE,
    ERRORS,
    KEEPALIVE,
    KEPT_AUTH,
    NOT_IN_GATEWAY,
    SENT_ONCE,
    SNIPPET,
    SNIPPETS,
    STICKY,
    WAF,
    alias,
    auth_method,
    auth_redirect,
    canary_behavior,
    canary_header,
    cookie_attribute,
    error_page,
    hash_by,
    if_on,
    mirror_body,
    mirror_target,
    modsecurity,
    next_upstream,
    protocol,
    proxy_redirect,
    rewrite,
    timeout,
    verify_backend,
    vhost,
)
from translation.nginx.tables.rows import (
    ALIASES,
    CODES,
    METHODS,
    NAMES,
    ROOTS,
    TARGETS,
    URLS,
    VARIABLES,
    VARIABLES_AND_SPACES,
    WORDS,
    Row,
    are_networks,
    at_least,
    empty_or,
    is_bool,
    is_int,
    is_natural,
    is_size,
    like,
    one_of,
)
from translation.nginx.tables.verdicts import EXACT, approximate, no_effect, refused

__all__ = ["SNIPPETS", "TABLE", "Row", "groups"]

_AUTH_TLS = ("auth-tls-secret",)
_AUTH_URL_SET = ("auth-url",)
_BASIC = ("auth-type",)
_CANARY = ("canary",)
_CORS = ("enable-cors",)
_LIMITS = ("limit-rps", "limit-rpm", "limit-connections")
_COOKIE = ("affinity",)

_ROWS = (
    # paths
    Row("use-regex", "paths", valid=is_bool),
    Row("rewrite-target", "paths", rewrite, TARGETS),
    Row("x-forwarded-prefix", "paths", needs=("rewrite-target",)),
    Row("server-alias", "paths", alias, empty_or(ALIASES), "refused"),
    # redirects
    Row("app-root", "redirects", valid=ROOTS),
    Row("permanent-redirect", "redirects", valid=empty_or(URLS), wrong="refused"),
    Row("permanent-redirect-code", "redirects", EXACT, empty_or(is_int), "refused"),
    Row("temporal-redirect", "redirects", valid=empty_or(URLS), wrong="refused"),
    Row("temporal-redirect-code", "redirects", valid=is_int),
    Row("from-to-www-redirect", "redirects", valid=empty_or(is_bool), wrong="refused"),
    Row("ssl-redirect", "redirects", valid=is_bool),
    Row("force-ssl-redirect", "redirects", valid=is_bool),
    Row("preserve-trailing-slash", "redirects", valid=is_bool),
    Row(
        "use-port-in-redirects",
        "redirects",
        if_on(approximate("Redirects never name the port of the gateway.")),
        is_bool,
    ),
    Row("relative-redirects", "redirects", EXACT, is_bool),
    # client certificates
    Row("auth-tls-secret", "client certificates"),
    Row("auth-tls-verify-client", "client certificates", needs=_AUTH_TLS),
    Row("auth-tls-verify-depth", "client certificates", EXACT, is_natural, "refused", _AUTH_TLS),
    Row(
        "auth-tls-error-page",
        "client certificates",
        error_page,
        like(r"\S*"),
        "refused",
        _AUTH_TLS,
    ),
    Row(
        "auth-tls-pass-certificate-to-upstream",
        "client certificates",
        EXACT,
        empty_or(is_bool),
        "refused",
        _AUTH_TLS,
    ),
    Row(
        "auth-tls-match-cn",
        "client certificates",
        EXACT,
        empty_or(like(r"CN=[/\-.\_~a-zA-Z0-9*()|^$+?\[\]{}\\,= ]+")),
        "refused",
        _AUTH_TLS,
    ),
    # authentication
    Row("auth-type", "authentication", EXACT, empty_or(one_of("basic", "digest")), "refused"),
    Row("auth-secret", "authentication", needs=_BASIC),
    Row("auth-secret-type", "authentication", EXACT, empty_or(one_of("auth-file", "auth-map")), "refused", _BASIC),
    Row("auth-realm", "authentication", EXACT, WORDS, "refused", _BASIC),
    Row("auth-url", "authentication", EXACT, empty_or(like(r"[^;]*")), "refused"),
    Row("auth-method", "authentication", auth_method, empty_or(one_of(*METHODS)), "closed", _AUTH_URL_SET),
    Row("auth-signin", "authentication", EXACT, empty_or(like(r"\S*")), "refused", _AUTH_URL_SET),
    Row("auth-signin-redirect-param", "authentication", EXACT, needs=_AUTH_URL_SET),
    Row(
        "auth-response-headers",
        "authentication",
        EXACT,
        empty_or(like(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+)*")),
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-request-redirect", "authentication", auth_redirect, like(r"\S*"), "refused", _AUTH_URL_SET),
    Row(
        "auth-proxy-set-headers",
        "authentication",
        SENT_ONCE,
        like(r"[^;]*"),
        needs=_AUTH_URL_SET,
    ),
    Row("auth-always-set-cookie", "authentication", EXACT, is_bool, needs=_AUTH_URL_SET, if_wrong=KEPT_AUTH),
    Row("auth-cache-key", "authentication", CACHE, needs=_AUTH_URL_SET),
    Row(
        "auth-cache-duration",
        "authentication",
        CACHE,
        empty_or(like(r"[^;]*;.*|(\d{3}\s+)*\d+(ms|s|m|h|d|w)?(\s*,\s*(\d{3}\s+)*\d+(ms|s|m|h|d|w)?)*")),
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-keepalive", "authentication", KEEPALIVE, is_int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-requests", "authentication", KEEPALIVE, is_int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-share-vars", "authentication", KEEPALIVE, is_bool, needs=_AUTH_URL_SET),
    Row("auth-keepalive-timeout", "authentication", KEEPALIVE, is_int, needs=_AUTH_URL_SET),
    Row("enable-global-auth", "authentication", EXACT, is_bool),
    Row("satisfy", "authentication", EXACT, one_of("any", "all")),
    # address lists
    Row("whitelist-source-range", "address lists", EXACT, are_networks, "closed"),
    Row("allowlist-source-range", "address lists", EXACT, are_networks, "closed"),
    Row("denylist-source-range", "address lists", EXACT, are_networks, "closed"),
    # limits
    Row("limit-rps", "limits", EXACT, empty_or(is_int), "refused"),
    Row("limit-rpm", "limits", EXACT, empty_or(is_int), "refused"),
    Row("limit-connections", "limits", EXACT, empty_or(is_int), "refused"),
    Row("limit-burst-multiplier", "limits", EXACT, at_least(1), "refused", _LIMITS),
    Row("limit-whitelist", "limits", EXACT, empty_or(are_networks), "refused", _LIMITS),
    Row("limit-allowlist", "limits", EXACT, empty_or(are_networks), "refused", _LIMITS),
    Row("limit-rate", "limits", approximate(f"{NOT_IN_GATEWAY}: responses are not slowed down."), is_int),
    Row("limit-rate-after", "limits", approximate(f"{NOT_IN_GATEWAY}: responses are not slowed down."), is_int),
    # CORS
    Row("enable-cors", "CORS", EXACT, is_bool),
    *(
        Row(f"cors-{name}", "CORS", EXACT, needs=_CORS)
        for name in ("allow-origin", "allow-methods", "allow-headers", "expose-headers", "allow-credentials", "max-age")
    ),
    # affinity and balancing
    Row("affinity", "affinity", STICKY, one_of("cookie")),
    Row("affinity-mode", "affinity", EXACT, needs=_COOKIE),
    Row("affinity-canary-behavior", "affinity", canary_behavior, needs=_COOKIE),
    *(
        Row(f"session-cookie-{name}", "affinity", EXACT, needs=_COOKIE)
        for name in ("name", "path", "domain", "secure", "max-age", "expires", "samesite")
    ),
    Row("session-cookie-conditional-samesite-none", "affinity", EXACT, is_bool, needs=_COOKIE),
    Row(
        "session-cookie-change-on-failure",
        "affinity",
        approximate("A client whose backend fails goes to the next one, and back when it recovers."),
        is_bool,
        needs=_COOKIE,
    ),
    Row("load-balance", "balancing", EXACT, empty_or(one_of("round_robin", "ewma")), "refused"),
    Row("upstream-hash-by", "balancing", hash_by, VARIABLES_AND_SPACES, "refused"),
    Row(
        "upstream-hash-by-subset",
        "balancing",
        if_on(approximate("The hash chooses one endpoint, not a subset.")),
        is_bool,
    ),
    Row(
        "upstream-hash-by-subset-size",
        "balancing",
        approximate("The hash chooses one endpoint, not a subset."),
        is_int,
        needs=("upstream-hash-by-subset",),
    ),
    # canary
    Row("canary", "canary", EXACT, is_bool),
    Row(
        "canary-weight",
        "canary",
        approximate("Weights are applied exactly, in turns, instead of randomly."),
        is_int,
        needs=_CANARY,
    ),
    Row("canary-weight-total", "canary", EXACT, is_int, needs=_CANARY),
    Row("canary-by-header", "canary", canary_header, needs=_CANARY),
    Row("canary-by-header-value", "canary", EXACT, needs=_CANARY),
    Row("canary-by-header-pattern", "canary", EXACT, needs=_CANARY),
    Row("canary-by-cookie", "canary", EXACT, needs=_CANARY),
    # backend
    Row("backend-protocol", "backend", protocol),
    Row("upstream-vhost", "backend", vhost, VARIABLES, "refused"),
    Row("service-upstream", "backend", EXACT, is_bool),
    Row("default-backend", "backend", EXACT, empty_or(NAMES), "refused"),
    Row("proxy-ssl-secret", "backend", EXACT, like(r"[^;]*"), "refused"),
    Row("proxy-ssl-verify", "backend", verify_backend, one_of("on", "off"), needs=("proxy-ssl-secret",)),
    Row(
        "proxy-ssl-verify-depth",
        "backend",
        no_effect("Certificates of backends are not verified."),
        is_natural,
        "refused",
        ("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-name",
        "backend",
        approximate("The server name in the handshake is the Host of the request."),
        needs=("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-server-name",
        "backend",
        approximate("The gateway always sends the Host of the request in the handshake."),
        needs=("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-ciphers",
        "backend",
        no_effect("Ciphers towards backends are those of the gateway."),
        like(r"[^ ]*"),
        "refused",
        ("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-protocols",
        "backend",
        no_effect("TLS versions towards backends are those of the gateway."),
        needs=("proxy-ssl-secret",),
    ),
    Row("proxy-http-version", "backend", EXACT, one_of("1.0", "1.1")),
    Row(
        "connection-proxy-header",
        "backend",
        approximate("The gateway sets the Connection header."),
        empty_or(one_of("close", "keep-alive")),
        "refused",
    ),
    Row("fastcgi-index", "backend", no_effect("Gateways do not support FastCGI."), empty_or(WORDS), "refused"),
    Row(
        "fastcgi-params-configmap",
        "backend",
        no_effect("Gateways do not support FastCGI."),
        like(r"[^;]*"),
        "refused",
    ),
    # timeouts and retries
    *(
        Row(f"proxy-{name}-timeout", "timeouts and retries", timeout, is_natural, "refused")
        for name in ("connect", "read", "send")
    ),
    Row("proxy-next-upstream", "timeouts and retries", next_upstream),
    Row("proxy-next-upstream-tries", "timeouts and retries", EXACT, is_natural, "refused"),
    Row("proxy-next-upstream-timeout", "timeouts and retries", EXACT, is_natural, "refused"),
    # bodies and buffers
    Row("proxy-body-size", "bodies and buffers", EXACT, is_size),
    Row("client-body-buffer-size", "bodies and buffers", BUFFERS, empty_or(is_size), "refused"),
    Row("proxy-request-buffering", "bodies and buffers", EXACT, one_of("on", "off")),
    Row("proxy-buffering", "bodies and buffers", EXACT, one_of("on", "off")),
    Row(
        "proxy-buffer-size",
        "bodies and buffers",
        approximate("Larger response headers need proxy_buffer_size in the gateway's config.yaml."),
        is_size,
    ),
    Row("proxy-buffers-number", "bodies and buffers", BUFFERS, at_least(0), "refused"),
    Row("proxy-busy-buffers-size", "bodies and buffers", BUFFERS, is_size),
    Row("proxy-max-temp-file-size", "bodies and buffers", BUFFERS, is_size),
    # headers and cookies
    Row("custom-headers", "headers and cookies", EXACT, like(r"[^;]*")),
    Row("proxy-cookie-domain", "headers and cookies", cookie_attribute),
    Row(
        "proxy-cookie-path",
        "headers and cookies",
        cookie_attribute,
        empty_or(like(r"\S+ \S+|off|.*;.*")),
        "refused",
    ),
    Row("proxy-redirect-from", "headers and cookies", proxy_redirect),
    Row("proxy-redirect-to", "headers and cookies"),
    # errors
    Row(
        "custom-http-errors",
        "errors",
        ERRORS,
        empty_or(CODES),
        "refused",
    ),
    Row("disable-proxy-intercept-errors", "errors", EXACT, is_bool),
    # mirror
    Row("mirror-target", "mirror", mirror_target),
    Row("mirror-host", "mirror", EXACT, needs=("mirror-target",)),
    Row("mirror-request-body", "mirror", mirror_body, needs=("mirror-target",)),
    # TLS
    Row(
        "ssl-passthrough",
        "TLS",
        if_on(
            refused("APISIX 3.18 has no TLS passthrough, 3.19 has: the gateway terminates TLS and serves the paths.")
        ),
        empty_or(is_bool),
        "refused",
    ),
    Row(
        "ssl-ciphers",
        "TLS",
        approximate("Ciphers are a setting of the whole gateway (apisix.ssl.ssl_ciphers)."),
        empty_or(like(r"[A-Z0-9_\-:!@+a-z]*(ECDHE|AES|HIGH|DEFAULT|ALL|GCM|CHACHA|RSA)[A-Za-z0-9_\-:!@+]*")),
        "refused",
    ),
    Row(
        "ssl-prefer-server-ciphers",
        "TLS",
        no_effect("The order of ciphers is a setting of the whole gateway."),
        is_bool,
    ),
    # WAF
    *(Row(name, "WAF", modsecurity, is_bool) for name in sorted(WAF - {"modsecurity-transaction-id"})),
    Row("modsecurity-transaction-id", "WAF", no_effect("Gateways have no ModSecurity.")),
    # snippets
    *(Row(name, "snippets", SNIPPET) for name in sorted(SNIPPETS)),
    # logs and traces
    Row("enable-access-log", "logs and traces", no_effect("Access logs are a setting of the whole gateway.")),
    Row("enable-rewrite-log", "logs and traces", no_effect("Gateways do not log rewrites.")),
    *(
        Row(name, "logs and traces", no_effect("Tracing is a plugin of the gateway."))
        for name in ("enable-opentelemetry", "opentelemetry-trust-incoming-span", "opentelemetry-operation-name")
    ),
    Row(
        "http2-push-preload",
        "logs and traces",
        no_effect("Browsers have dropped HTTP/2 push."),
        empty_or(is_bool),
        "refused",
    ),
)

TABLE: Mapping[str, Row] = {row.name: row for row in _ROWS}
"""Annotation without the prefix → its row, in the order of the documents."""


def groups() -> Iterable[str]:
    """Return the groups in the order of the documents."""
    return dict.fromkeys(row.group for row in _ROWS)
