"""The verdict table of annotations: every annotation of ingress-nginx 1.15, with the effect of its value.

`migrate`, the documents and the provider all use this table. A row defines which values are valid, the outcome of an
invalid one (observed on a live controller), and the verdict on a valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from apisix_ingress.model.formats.patterns import LONGEST_LIST
from translation.nginx.tables import checks
from translation.nginx.tables.judges import (
    BUFFERS,
    ERRORS,
    MIRRORED,
    SNIPPET,
    SNIPPETS,
    STICKY,
    WAF,
    alias,
    backend_name,
    buffer_size,
    canary_behavior,
    cookie_attribute,
    cookie_domain,
    cookie_name,
    cookie_path,
    hash_by,
    if_on,
    mirror_body,
    mirror_target,
    modsecurity,
    next_upstream,
    number,
    origins,
    protocol,
    proxy_redirect,
    redirect_code,
    rewrite,
    timeout,
    verify_backend,
    vhost,
)
from translation.nginx.tables.protection import PROTECTION
from translation.nginx.tables.rows import Row
from translation.nginx.tables.verdicts import EXACT, approximate, no_effect, refused

__all__ = ["SNIPPETS", "TABLE", "Row", "groups"]

_CANARY = ("canary",)
_CORS = ("enable-cors",)
_COOKIE = ("affinity",)

_ROWS = (
    # paths
    Row("use-regex", "paths", valid=checks.is_bool),
    Row("rewrite-target", "paths", rewrite, checks.CAPTURES),
    Row("x-forwarded-prefix", "paths", EXACT, checks.CAPTURES_AND_SPACES, "refused"),
    Row("server-alias", "paths", alias, checks.are_servers, "refused", longest=LONGEST_LIST),
    # redirects
    Row("app-root", "redirects", valid=checks.ROOTS),
    Row("permanent-redirect", "redirects", valid=checks.empty_or(checks.URLS), wrong="refused"),
    Row("permanent-redirect-code", "redirects", redirect_code(308), checks.empty_or(checks.is_int), "refused"),
    Row("temporal-redirect", "redirects", valid=checks.empty_or(checks.URLS), wrong="refused"),
    Row(
        "temporal-redirect-code",
        "redirects",
        redirect_code(307),
        checks.empty_or(checks.is_int),
        "refused",
        ("temporal-redirect",),
    ),
    Row("from-to-www-redirect", "redirects", valid=checks.empty_or(checks.is_bool), wrong="refused"),
    Row("ssl-redirect", "redirects", valid=checks.is_bool),
    Row("force-ssl-redirect", "redirects", valid=checks.is_bool),
    Row("preserve-trailing-slash", "redirects", valid=checks.is_bool),
    Row("use-port-in-redirects", "redirects", valid=checks.is_bool),
    Row("relative-redirects", "redirects", EXACT, checks.empty_or(checks.is_bool), "refused"),
    *PROTECTION,
    # CORS
    Row("enable-cors", "CORS", EXACT, checks.is_bool),
    Row("cors-allow-origin", "CORS", origins, needs=_CORS, longest=LONGEST_LIST),
    *(
        Row(f"cors-{name}", "CORS", EXACT, needs=_CORS)
        for name in ("allow-methods", "allow-headers", "expose-headers", "allow-credentials")
    ),
    Row("cors-max-age", "CORS", number, needs=_CORS),
    # affinity and balancing
    Row("affinity", "affinity", STICKY, checks.one_of("cookie")),
    Row("affinity-mode", "affinity", EXACT, checks.one_of("balanced", "persistent"), needs=_COOKIE),
    Row("affinity-canary-behavior", "affinity", canary_behavior, checks.one_of("sticky", "legacy"), needs=_COOKIE),
    Row("session-cookie-name", "affinity", cookie_name, checks.BASIC, needs=_COOKIE),
    Row("session-cookie-path", "affinity", cookie_path, checks.URLS_AND_SPACES, needs=_COOKIE),
    Row("session-cookie-domain", "affinity", cookie_domain, checks.BASIC, needs=_COOKIE),
    Row("session-cookie-secure", "affinity", EXACT, checks.is_bool, needs=_COOKIE),
    Row("session-cookie-max-age", "affinity", EXACT, checks.AGES, needs=_COOKIE),
    Row("session-cookie-expires", "affinity", EXACT, checks.AGES, needs=_COOKIE),
    Row("session-cookie-samesite", "affinity", EXACT, checks.is_same_site, needs=_COOKIE),
    Row("session-cookie-conditional-samesite-none", "affinity", EXACT, checks.is_bool, needs=_COOKIE),
    Row(
        "session-cookie-change-on-failure",
        "affinity",
        approximate("A client whose backend fails goes to the next one, and back when it recovers."),
        checks.is_bool,
        needs=_COOKIE,
    ),
    Row("load-balance", "balancing", EXACT, checks.empty_or(checks.one_of(*checks.BALANCERS)), "refused"),
    Row("upstream-hash-by", "balancing", hash_by, checks.VARIABLES, "refused"),
    Row(
        "upstream-hash-by-subset",
        "balancing",
        if_on(approximate("The hash chooses one endpoint, not a subset.")),
        checks.empty_or(checks.is_bool),
        "refused",
    ),
    Row(
        "upstream-hash-by-subset-size",
        "balancing",
        approximate("The hash chooses one endpoint, not a subset."),
        checks.empty_or(checks.is_int),
        "refused",
        ("upstream-hash-by-subset",),
    ),
    # canary
    Row("canary", "canary", EXACT, checks.is_bool),
    Row(
        "canary-weight",
        "canary",
        approximate("Weights are applied exactly (round-robin) instead of randomly."),
        checks.is_int,
        needs=_CANARY,
    ),
    Row("canary-weight-total", "canary", EXACT, checks.is_int, needs=_CANARY),
    Row("canary-by-header", "canary", EXACT, checks.BASIC, needs=_CANARY),
    Row("canary-by-header-value", "canary", EXACT, checks.BASIC, needs=_CANARY),
    Row("canary-by-header-pattern", "canary", EXACT, checks.PATTERNS, needs=_CANARY),
    Row("canary-by-cookie", "canary", EXACT, checks.BASIC, needs=_CANARY),
    # backend
    Row("backend-protocol", "backend", protocol),
    Row("upstream-vhost", "backend", vhost, checks.SERVERS, "refused"),
    Row("service-upstream", "backend", EXACT, checks.is_bool),
    Row("default-backend", "backend", EXACT, checks.empty_or(checks.SERVICES), "refused"),
    Row("proxy-ssl-secret", "backend", EXACT, checks.BASIC, "refused"),
    Row(
        "proxy-ssl-verify",
        "backend",
        EXACT,
        checks.one_of("on", "off"),
        needs=("proxy-ssl-secret",),
        within=verify_backend,
    ),
    Row(
        "proxy-ssl-verify-depth",
        "backend",
        EXACT,
        checks.is_natural,
        "refused",
        ("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-name",
        "backend",
        EXACT,
        checks.SERVERS,
        needs=("proxy-ssl-secret",),
        within=backend_name,
    ),
    Row(
        "proxy-ssl-server-name",
        "backend",
        approximate("The gateway always sends a server name; without proxy-ssl-name, the Host of the request."),
        checks.one_of("on", "off"),
        needs=("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-ciphers",
        "backend",
        no_effect("Ciphers towards backends are those of the gateway."),
        checks.is_one_word,
        "refused",
        ("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-protocols",
        "backend",
        no_effect("TLS versions towards backends are those of the gateway."),
        needs=("proxy-ssl-secret",),
    ),
    Row("proxy-http-version", "backend", EXACT, checks.one_of("1.0", "1.1")),
    Row(
        "connection-proxy-header",
        "backend",
        approximate("The gateway sets the Connection header."),
        checks.empty_or(checks.one_of("close", "keep-alive")),
        "refused",
    ),
    Row(
        "fastcgi-index",
        "backend",
        no_effect("Gateways do not support FastCGI."),
        checks.empty_or(checks.NAMES),
        "refused",
    ),
    Row(
        "fastcgi-params-configmap",
        "backend",
        no_effect("Gateways do not support FastCGI."),
        checks.BASIC,
        "refused",
    ),
    # timeouts and retries
    *(
        Row(f"proxy-{name}-timeout", "timeouts and retries", timeout, checks.is_natural, "refused")
        for name in ("connect", "read", "send")
    ),
    Row("proxy-next-upstream", "timeouts and retries", next_upstream, checks.FAILURES),
    Row("proxy-next-upstream-tries", "timeouts and retries", number, checks.is_natural, "refused"),
    Row("proxy-next-upstream-timeout", "timeouts and retries", number, checks.is_natural, "refused"),
    # bodies and buffers
    Row("proxy-body-size", "bodies and buffers", EXACT, checks.is_size),
    Row("client-body-buffer-size", "bodies and buffers", BUFFERS, checks.empty_or(checks.is_size), "refused"),
    Row("proxy-request-buffering", "bodies and buffers", EXACT, checks.one_of("on", "off")),
    Row("proxy-buffering", "bodies and buffers", EXACT, checks.one_of("on", "off")),
    Row(
        "proxy-buffer-size",
        "bodies and buffers",
        EXACT,
        checks.is_size,
        within=buffer_size,
    ),
    Row("proxy-buffers-number", "bodies and buffers", BUFFERS, checks.at_least(0), "refused"),
    Row("proxy-busy-buffers-size", "bodies and buffers", BUFFERS, checks.is_size),
    Row("proxy-max-temp-file-size", "bodies and buffers", BUFFERS, checks.is_size),
    # headers and cookies
    Row("custom-headers", "headers and cookies", EXACT, checks.BASIC),
    Row(
        "proxy-cookie-domain",
        "headers and cookies",
        cookie_attribute,
        checks.like(rf"off|{checks.WORD}\s+{checks.WORD}"),
    ),
    Row(
        "proxy-cookie-path",
        "headers and cookies",
        cookie_attribute,
        checks.is_cookie_path,
        checks.cookie_path_outcome,
    ),
    Row("proxy-redirect-from", "headers and cookies", proxy_redirect, checks.URLS_AND_SPACES),
    Row("proxy-redirect-to", "headers and cookies", EXACT, checks.URLS_AND_SPACES),
    # errors
    Row(
        "custom-http-errors",
        "errors",
        ERRORS,
        checks.empty_or(checks.CODES),
        "refused",
    ),
    Row("disable-proxy-intercept-errors", "errors", EXACT, checks.is_bool),
    # mirror
    Row("mirror-target", "mirror", mirror_target, checks.SERVERS, if_wrong=MIRRORED),
    Row("mirror-host", "mirror", EXACT, checks.SERVERS, needs=("mirror-target",)),
    Row("mirror-request-body", "mirror", mirror_body, checks.one_of("on", "off"), needs=("mirror-target",)),
    # TLS
    Row(
        "ssl-passthrough",
        "TLS",
        if_on(
            refused(
                "APISIX 3.18 has no TLS passthrough, 3.19 has: the gateway terminates TLS and serves the paths."
                " Remove it, and set backend-protocol: HTTPS if the backend expects TLS."
            )
        ),
        checks.empty_or(checks.is_bool),
        "refused",
    ),
    Row(
        "ssl-ciphers",
        "TLS",
        approximate("Ciphers are a setting of the whole gateway (apisix.ssl.ssl_ciphers)."),
        checks.empty_or(
            checks.like(r"[A-Z0-9_\-:!@+a-z]*(ECDHE|AES|HIGH|DEFAULT|ALL|GCM|CHACHA|RSA)[A-Za-z0-9_\-:!@=+]* *")
        ),
        "refused",
    ),
    Row(
        "ssl-prefer-server-ciphers",
        "TLS",
        no_effect("The order of ciphers is a setting of the whole gateway."),
        checks.is_bool,
    ),
    # WAF
    *(Row(name, "WAF", modsecurity, checks.is_bool) for name in sorted(WAF - {"modsecurity-transaction-id"})),
    Row("modsecurity-transaction-id", "WAF", no_effect("Gateways have no ModSecurity.")),
    # snippets
    *(Row(name, "snippets", SNIPPET, longest=LONGEST_LIST) for name in sorted(SNIPPETS)),
    # logs and traces
    Row("enable-access-log", "logs and traces", no_effect("Access logs are a setting of the whole gateway.")),
    Row("enable-rewrite-log", "logs and traces", no_effect("Gateways do not log rewrites.")),
    *(
        Row(name, "logs and traces", no_effect("Tracing is a plugin of the gateway."))
        for name in ("enable-opentelemetry", "opentelemetry-trust-incoming-span")
    ),
    Row(
        "opentelemetry-operation-name",
        "logs and traces",
        no_effect("Tracing is a plugin of the gateway."),
        checks.spaced(r"[A-Za-z0-9_-]*"),
        "refused",
        ("enable-opentelemetry",),
    ),
    Row(
        "http2-push-preload",
        "logs and traces",
        no_effect("Browsers have dropped HTTP/2 push."),
        checks.empty_or(checks.is_bool),
        "refused",
    ),
)

TABLE: Mapping[str, Row] = {row.name: row for row in _ROWS}
"""Annotation without the prefix → its row, in the order of the documents."""


def groups() -> Iterable[str]:
    """Return the groups in the order of the documents."""
    return dict.fromkeys(row.group for row in _ROWS)
