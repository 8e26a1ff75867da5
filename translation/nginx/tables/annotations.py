"""The verdict table of annotations: every one that ingress-nginx 1.15 knows, with what becomes of its value.

`migrate`, the documents, the webhook's warnings and the provider read this table and nothing else. A row says which
values are valid, what a wrong one leads to (observed: outcomes of a live controller), and the verdict on a valid one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from translation.nginx.tables.values import Outcome, Values, boolean, integer, networks, size
from translation.nginx.tables.verdicts import EXACT, Verdict, approximate, no_effect, refused

Check = Callable[[str], bool]
Judge = Callable[[str], Verdict]


@dataclass(frozen=True, slots=True)
class Row:
    """One annotation.

    Attributes:
        name: Without the prefix.
        group: The heading under which documents list it.
        verdict: On a valid value; a function where it depends on the value.
        valid: Whether a value is taken.
        wrong: What a value that is not taken leads to.
        needs: Annotations without one of which this one is not read.
        if_wrong: The verdict on a value that is not taken, where it is not what `wrong` says.
    """

    name: str
    group: str
    verdict: Verdict | Judge = EXACT
    valid: Check = bool
    wrong: Outcome = "default"
    needs: tuple[str, ...] = ()
    if_wrong: Verdict | None = None

    def judge(self, value: str) -> Verdict:
        """Return the verdict on a value."""
        if not self.valid(value):
            if self.if_wrong and value:
                return self.if_wrong
            return (
                _WRONG[self.wrong]
                if value
                else no_effect("It is empty, so the default applies, as with ingress-nginx.")
            )
        return self.verdict(value) if callable(self.verdict) else self.verdict

    def outcome(self, value: str) -> Outcome | None:
        """Return what a wrong value leads to; None for a valid one."""
        return None if self.valid(value) else self.wrong


_WRONG: Mapping[Outcome, Verdict] = {
    "default": no_effect("The value is not valid, so the default applies, as with ingress-nginx."),
    "closed": Verdict("exact", "The value is not valid: its paths answer 503, as with ingress-nginx.", True),
    "refused": Verdict("exact", "The value is not valid: the whole Ingress is refused, as with ingress-nginx.", True),
}


def _bool(text: str) -> bool:
    return boolean(text) is not None


def _int(text: str) -> bool:
    return integer(text) is not None


def _natural(text: str) -> bool:
    found = integer(text)
    return found is None or found >= 0


def _at_least(least: int) -> Check:
    def valid(text: str) -> bool:
        found = integer(text)
        return found is None or found >= least

    return valid


def _empty_or(check: Check) -> Check:
    return lambda text: not text or check(text)


def _like(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _one_of(*words: str) -> Check:
    return lambda text: text in words


def _networks(text: str) -> bool:
    return networks(text) is not None


def _size(text: str) -> bool:
    return size(text) is not None


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE")

_WORDS = _like(r"[A-Za-z0-9_.~/\- ]*")
_NAME = _like(r"[A-Za-z0-9]([A-Za-z0-9_.\-/]*[A-Za-z0-9])?")
_URL = _like(r"[A-Za-z0-9_.~/:?&=%#\-]*")
_VARIABLES = _like(r"[A-Za-z0-9_.~/:\-${}]*")
_VARIABLES_AND_SPACES = _like(r"[A-Za-z0-9_.~/:\-${} ]*")
_ALIASES = _like(r"[A-Za-z0-9_.*,~^\[\]()+?\\$|\-{}]*( ?, ?[A-Za-z0-9_.*~^\[\]()+?\\$|\-{}]*)*")
_CODES = _like(r"[0-9]{3}(,[0-9]{3})*")
_ABSOLUTE = _like(r"https?://[^\s\"';{}]+")
_TARGET = _like(r"[A-Za-z0-9_.~/:\-${}]+")
_ROOT = _like(r"/[A-Za-z0-9_.~/\-]*")

SNIPPETS = frozenset(
    {"configuration-snippet", "server-snippet", "stream-snippet", "auth-snippet", "modsecurity-snippet"}
)
"""Annotations with raw nginx configuration: never executed."""

WAF = frozenset({"enable-modsecurity", "enable-owasp-core-rules", "modsecurity-transaction-id"})

_SNIPPET = refused(
    "It holds nginx configuration, which is never executed; use a typed annotation or a plugin.", protects=True
)
_BUFFERS = no_effect("Sizes of buffers are settings of the whole gateway (nginx_config in config.yaml).")
_NOT_IN_GATEWAY = "The gateway has no such setting for one route"
_KEPT_AUTH = approximate("With this value ingress-nginx drops the authentication; here it stays.")
_SENT_ONCE = approximate("A header that ingress-nginx sends twice, its own and that one, is sent once.")
_CACHE = approximate("Answers of the authentication service are not cached: it is asked for every request.")
_KEEPALIVE = approximate("Connections to the authentication service are kept as the gateway does by default.")


def _protocol(text: str) -> Verdict:
    match text.upper():
        case "HTTP" | "HTTPS" | "GRPC" | "GRPCS":
            return EXACT
        case "AUTO_HTTP":
            return EXACT
        case "FCGI":
            return refused("A gateway does not speak FastCGI; put an HTTP server in front of the backend.")
        case _:
            return no_effect("The value is not a protocol, so HTTP is used, as with ingress-nginx.")


def _next_upstream(text: str) -> Verdict:
    words = set(text.split())
    if words == {"error", "timeout"}:
        return EXACT
    if "off" in words:
        return EXACT
    return approximate("Only connection errors and timeouts are retried; answers with an error status are not.")


def _verify(text: str) -> Verdict:
    if text != "on":
        return EXACT
    return refused("APISIX 3.18 can't verify the certificate of an HTTPS backend; 3.19 can.", protects=True)


def _rewrite(text: str) -> Verdict:
    if not text.startswith(("/", "http://", "https://")):
        return refused("The target has no slash at its beginning, which backends refuse; add it.")
    if re.search(r"\$\{?[a-z]", text):
        return approximate("Beside variables of nginx, groups of the path are not filled in.")
    return EXACT


def _alias(text: str) -> Verdict:
    if "~" in text:
        return refused("A regular expression can't be a host of a gateway; list the names.")
    return EXACT


def _error_page(text: str) -> Verdict:
    if text.startswith(("http://", "https://")):
        return EXACT
    return approximate("A client without a valid certificate gets 400 instead of the page.")


def _timeout(text: str) -> Verdict:
    return approximate("A gateway has no timeout of 0; 60 s apply.") if integer(text) == 0 else EXACT


def _auth_redirect(text: str) -> Verdict:
    return _KEPT_AUTH if ";" in text else EXACT


def _auth_method(text: str) -> Verdict:
    return EXACT if text == "GET" else approximate("The request to the service has Content-Length: 0.")


def _hash_by(text: str) -> Verdict:
    if "$" not in text:
        return approximate("Without a variable every request has one key, which a gateway spreads by client address.")
    return approximate("A request whose endpoint fails goes to another one.")


def _on(when_on: Verdict) -> Judge:
    return lambda text: when_on if boolean(text) else EXACT


def _modsecurity(text: str) -> Verdict:
    return refused("A gateway has no ModSecurity; the path is closed.", protects=True) if boolean(text) else EXACT


def _http_version(text: str) -> Verdict:
    return EXACT if text == "1.1" else approximate("Requests to the backend are HTTP/1.1.")


def _vhost(text: str) -> Verdict:
    known = {"$host", "$namespace", "$service_name", "$ingress_name", "$service_port"}
    used = set(re.findall(r"\$\{?[a-z_]+\}?", text.replace("{", "").replace("}", "")))
    return EXACT if used <= known else refused("The variable is not known to the gateway.")


_AUTH_TLS = ("auth-tls-secret",)
_AUTH_URL_SET = ("auth-url",)
_BASIC = ("auth-type",)
_CANARY = ("canary",)
_CORS = ("enable-cors",)
_LIMITS = ("limit-rps", "limit-rpm", "limit-connections")
_COOKIE = ("affinity",)
_STICKY = approximate(
    "The gateway chooses the backend by a hash of the cookie: a client may change its backend once, after its first "
    "request, and a small share of clients does when endpoints change."
)

_ROWS = (
    # paths
    Row("use-regex", "paths", valid=_bool),
    Row("rewrite-target", "paths", _rewrite, _TARGET),
    Row("x-forwarded-prefix", "paths", needs=("rewrite-target",)),
    Row("server-alias", "paths", _alias, _empty_or(_ALIASES), "refused"),
    # redirects
    Row("app-root", "redirects", valid=_ROOT),
    Row("permanent-redirect", "redirects", valid=_empty_or(_URL), wrong="refused"),
    Row("permanent-redirect-code", "redirects", EXACT, _empty_or(_int), "refused"),
    Row("temporal-redirect", "redirects", valid=_empty_or(_URL), wrong="refused"),
    Row("temporal-redirect-code", "redirects", valid=_int),
    Row("from-to-www-redirect", "redirects", valid=_empty_or(_bool), wrong="refused"),
    Row("ssl-redirect", "redirects", valid=_bool),
    Row("force-ssl-redirect", "redirects", valid=_bool),
    Row("preserve-trailing-slash", "redirects", valid=_bool),
    Row("use-port-in-redirects", "redirects", _on(approximate("Redirects never name the port of the gateway.")), _bool),
    Row("relative-redirects", "redirects", _on(approximate("Redirects are absolute.")), _bool),
    # client certificates
    Row("auth-tls-secret", "client certificates"),
    Row("auth-tls-verify-client", "client certificates", needs=_AUTH_TLS),
    Row("auth-tls-verify-depth", "client certificates", EXACT, _natural, "refused", _AUTH_TLS),
    Row(
        "auth-tls-error-page",
        "client certificates",
        _error_page,
        _like(r"\S*"),
        "refused",
        _AUTH_TLS,
    ),
    Row("auth-tls-pass-certificate-to-upstream", "client certificates", EXACT, _empty_or(_bool), "refused", _AUTH_TLS),
    Row(
        "auth-tls-match-cn",
        "client certificates",
        EXACT,
        _empty_or(_like(r"CN=[/\-.\_~a-zA-Z0-9*()|^$+?\[\]{}\\,= ]+")),
        "refused",
        _AUTH_TLS,
    ),
    # authentication
    Row("auth-type", "authentication", EXACT, _empty_or(_one_of("basic", "digest")), "refused"),
    Row("auth-secret", "authentication", needs=_BASIC),
    Row("auth-secret-type", "authentication", EXACT, _empty_or(_one_of("auth-file", "auth-map")), "refused", _BASIC),
    Row("auth-realm", "authentication", EXACT, _WORDS, "refused", _BASIC),
    Row("auth-url", "authentication", EXACT, _empty_or(_like(r"[^;]*")), "refused"),
    Row("auth-method", "authentication", _auth_method, _empty_or(_one_of(*METHODS)), "closed", _AUTH_URL_SET),
    Row("auth-signin", "authentication", EXACT, _empty_or(_like(r"\S*")), "refused", _AUTH_URL_SET),
    Row("auth-signin-redirect-param", "authentication", EXACT, needs=_AUTH_URL_SET),
    Row(
        "auth-response-headers",
        "authentication",
        EXACT,
        _empty_or(_like(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+)*")),
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-request-redirect", "authentication", _auth_redirect, _like(r"\S*"), "refused", _AUTH_URL_SET),
    Row(
        "auth-proxy-set-headers",
        "authentication",
        _SENT_ONCE,
        _like(r"[^;]*"),
        needs=_AUTH_URL_SET,
    ),
    Row("auth-always-set-cookie", "authentication", EXACT, _bool, needs=_AUTH_URL_SET, if_wrong=_KEPT_AUTH),
    Row("auth-cache-key", "authentication", _CACHE, needs=_AUTH_URL_SET),
    Row(
        "auth-cache-duration",
        "authentication",
        _CACHE,
        _empty_or(_like(r"[^;]*;.*|(\d{3}\s+)*\d+(ms|s|m|h|d|w)?(\s*,\s*(\d{3}\s+)*\d+(ms|s|m|h|d|w)?)*")),
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-keepalive", "authentication", _KEEPALIVE, _int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-requests", "authentication", _KEEPALIVE, _int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-share-vars", "authentication", _KEEPALIVE, _bool, needs=_AUTH_URL_SET),
    Row("auth-keepalive-timeout", "authentication", _KEEPALIVE, _int, needs=_AUTH_URL_SET),
    Row("enable-global-auth", "authentication", EXACT, _bool),
    Row("satisfy", "authentication", EXACT, _one_of("any", "all")),
    # address lists
    Row("whitelist-source-range", "address lists", EXACT, _networks, "closed"),
    Row("allowlist-source-range", "address lists", EXACT, _networks, "closed"),
    Row("denylist-source-range", "address lists", EXACT, _networks, "closed"),
    # limits
    Row("limit-rps", "limits", EXACT, _empty_or(_int), "refused"),
    Row("limit-rpm", "limits", EXACT, _empty_or(_int), "refused"),
    Row("limit-connections", "limits", EXACT, _empty_or(_int), "refused"),
    Row("limit-burst-multiplier", "limits", EXACT, _at_least(1), "refused", _LIMITS),
    Row("limit-whitelist", "limits", EXACT, _empty_or(_networks), "refused", _LIMITS),
    Row("limit-allowlist", "limits", EXACT, _empty_or(_networks), "refused", _LIMITS),
    Row("limit-rate", "limits", approximate(f"{_NOT_IN_GATEWAY}: responses are not slowed down."), _int),
    Row("limit-rate-after", "limits", approximate(f"{_NOT_IN_GATEWAY}: responses are not slowed down."), _int),
    # CORS
    Row("enable-cors", "CORS", EXACT, _bool),
    *(
        Row(f"cors-{name}", "CORS", EXACT, needs=_CORS)
        for name in ("allow-origin", "allow-methods", "allow-headers", "expose-headers", "allow-credentials", "max-age")
    ),
    # affinity and balancing
    Row("affinity", "affinity", _STICKY, _one_of("cookie")),
    Row("affinity-mode", "affinity", EXACT, needs=_COOKIE),
    Row("affinity-canary-behavior", "affinity", approximate("A client is not bound to the canary."), needs=_COOKIE),
    *(
        Row(f"session-cookie-{name}", "affinity", EXACT, needs=_COOKIE)
        for name in ("name", "path", "domain", "secure", "max-age", "expires", "samesite")
    ),
    Row(
        "session-cookie-conditional-samesite-none",
        "affinity",
        approximate("The browser is not looked at: SameSite=None goes to every browser."),
        _bool,
        needs=_COOKIE,
    ),
    Row(
        "session-cookie-change-on-failure",
        "affinity",
        approximate("A client whose backend fails goes to the next one, and back when it recovers."),
        _bool,
        needs=_COOKIE,
    ),
    Row("load-balance", "balancing", EXACT, _empty_or(_one_of("round_robin", "ewma")), "refused"),
    Row("upstream-hash-by", "balancing", _hash_by, _VARIABLES_AND_SPACES, "refused"),
    Row(
        "upstream-hash-by-subset", "balancing", _on(approximate("The hash chooses one endpoint, not a subset.")), _bool
    ),
    Row(
        "upstream-hash-by-subset-size",
        "balancing",
        approximate("The hash chooses one endpoint, not a subset."),
        _int,
        needs=("upstream-hash-by-subset",),
    ),
    # canary
    Row("canary", "canary", EXACT, _bool),
    Row(
        "canary-weight",
        "canary",
        approximate("Weights are kept exactly, in turns, and not by chance."),
        _int,
        needs=_CANARY,
    ),
    Row("canary-weight-total", "canary", EXACT, _int, needs=_CANARY),
    Row("canary-by-header", "canary", EXACT, needs=_CANARY),
    Row("canary-by-header-value", "canary", EXACT, needs=_CANARY),
    Row("canary-by-header-pattern", "canary", EXACT, needs=_CANARY),
    Row("canary-by-cookie", "canary", EXACT, needs=_CANARY),
    # backend
    Row("backend-protocol", "backend", _protocol),
    Row("upstream-vhost", "backend", _vhost, _VARIABLES, "refused"),
    Row("service-upstream", "backend", EXACT, _bool),
    Row("default-backend", "backend", EXACT, _empty_or(_NAME), "refused"),
    Row("proxy-ssl-secret", "backend", EXACT, _like(r"[^;]*"), "refused"),
    Row("proxy-ssl-verify", "backend", _verify, _one_of("on", "off"), needs=("proxy-ssl-secret",)),
    Row(
        "proxy-ssl-verify-depth",
        "backend",
        no_effect("Certificates of backends are not verified."),
        _natural,
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
        approximate("The gateway always names the Host of the request in the handshake."),
        needs=("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-ciphers",
        "backend",
        no_effect("Ciphers towards backends are those of the gateway."),
        _like(r"[^ ]*"),
        "refused",
        ("proxy-ssl-secret",),
    ),
    Row(
        "proxy-ssl-protocols",
        "backend",
        no_effect("TLS versions towards backends are those of the gateway."),
        needs=("proxy-ssl-secret",),
    ),
    Row("proxy-http-version", "backend", _http_version, _one_of("1.0", "1.1")),
    Row(
        "connection-proxy-header",
        "backend",
        approximate("The gateway decides about the Connection header."),
        _empty_or(_one_of("close", "keep-alive")),
        "refused",
    ),
    Row("fastcgi-index", "backend", no_effect("A gateway does not speak FastCGI."), _empty_or(_WORDS), "refused"),
    Row(
        "fastcgi-params-configmap",
        "backend",
        no_effect("A gateway does not speak FastCGI."),
        _like(r"[^;]*"),
        "refused",
    ),
    # timeouts and retries
    *(
        Row(f"proxy-{name}-timeout", "timeouts and retries", _timeout, _natural, "refused")
        for name in ("connect", "read", "send")
    ),
    Row("proxy-next-upstream", "timeouts and retries", _next_upstream),
    Row("proxy-next-upstream-tries", "timeouts and retries", EXACT, _natural, "refused"),
    Row("proxy-next-upstream-timeout", "timeouts and retries", EXACT, _natural, "refused"),
    # bodies and buffers
    Row("proxy-body-size", "bodies and buffers", EXACT, _size),
    Row("client-body-buffer-size", "bodies and buffers", _BUFFERS, _empty_or(_size), "refused"),
    Row("proxy-request-buffering", "bodies and buffers", EXACT, _one_of("on", "off")),
    Row("proxy-buffering", "bodies and buffers", EXACT, _one_of("on", "off")),
    Row(
        "proxy-buffer-size",
        "bodies and buffers",
        approximate("Larger response headers need proxy_buffer_size in the gateway's config.yaml."),
        _size,
    ),
    Row("proxy-buffers-number", "bodies and buffers", _BUFFERS, _at_least(0), "refused"),
    Row("proxy-busy-buffers-size", "bodies and buffers", _BUFFERS, _size),
    Row("proxy-max-temp-file-size", "bodies and buffers", _BUFFERS, _size),
    # headers and cookies
    Row("custom-headers", "headers and cookies", EXACT, _like(r"[^;]*")),
    Row("proxy-cookie-domain", "headers and cookies", approximate("Cookies of the backend are passed as they are.")),
    Row(
        "proxy-cookie-path",
        "headers and cookies",
        approximate("Cookies of the backend are passed as they are."),
        _empty_or(_like(r"\S+ \S+|off|.*;.*")),
        "refused",
    ),
    Row(
        "proxy-redirect-from",
        "headers and cookies",
        approximate("Location headers of the backend are passed as they are."),
    ),
    Row(
        "proxy-redirect-to",
        "headers and cookies",
        approximate("Location headers of the backend are passed as they are."),
    ),
    # errors
    Row(
        "custom-http-errors",
        "errors",
        approximate("Error answers are passed as they are; no error backend is asked."),
        _empty_or(_CODES),
        "refused",
    ),
    Row("disable-proxy-intercept-errors", "errors", EXACT, _bool),
    # mirror
    Row(
        "mirror-target",
        "mirror",
        approximate("The copy is HTTP/1.1 and has the Host of the request; responses are buffered."),
    ),
    Row(
        "mirror-host",
        "mirror",
        approximate("The mirrored request has the Host of the original one."),
        needs=("mirror-target",),
    ),
    Row(
        "mirror-request-body",
        "mirror",
        approximate("The mirrored request always has the body."),
        needs=("mirror-target",),
    ),
    # TLS
    Row(
        "ssl-passthrough",
        "TLS",
        _on(refused("APISIX 3.18 has no TLS passthrough; 3.19 has.")),
        _empty_or(_bool),
        "refused",
    ),
    Row(
        "ssl-ciphers",
        "TLS",
        approximate("Ciphers are a setting of the whole gateway (apisix.ssl.ssl_ciphers)."),
        _empty_or(_like(r"[A-Z0-9_\-:!@+a-z]*(ECDHE|AES|HIGH|DEFAULT|ALL|GCM|CHACHA|RSA)[A-Za-z0-9_\-:!@+]*")),
        "refused",
    ),
    Row(
        "ssl-prefer-server-ciphers", "TLS", no_effect("The order of ciphers is a setting of the whole gateway."), _bool
    ),
    # WAF
    *(Row(name, "WAF", _modsecurity, _bool) for name in sorted(WAF - {"modsecurity-transaction-id"})),
    Row("modsecurity-transaction-id", "WAF", no_effect("There is no ModSecurity in a gateway.")),
    # snippets
    *(Row(name, "snippets", _SNIPPET) for name in sorted(SNIPPETS)),
    # logs and traces
    Row("enable-access-log", "logs and traces", no_effect("Access logs are a setting of the whole gateway.")),
    Row("enable-rewrite-log", "logs and traces", no_effect("A gateway has no log of rewrites.")),
    *(
        Row(name, "logs and traces", no_effect("Tracing is a plugin of the gateway."))
        for name in ("enable-opentelemetry", "opentelemetry-trust-incoming-span", "opentelemetry-operation-name")
    ),
    Row(
        "http2-push-preload",
        "logs and traces",
        no_effect("Browsers have dropped HTTP/2 push."),
        _empty_or(_bool),
        "refused",
    ),
)

TABLE: Mapping[str, Row] = {row.name: row for row in _ROWS}
"""Annotation without the prefix → its row, in the order of the documents."""

UNKNOWN = no_effect("ingress-nginx 1.15 does not know this annotation.")


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one annotation of one Ingress."""

    annotation: str
    value: str
    verdict: Verdict
    outcome: Outcome | None = None


def judged(values: Values) -> Iterator[Finding]:
    """Yield the verdict on each annotation of an Ingress, by its value and in the order of the table."""
    for name in sorted(values.given, key=_place):
        value, row = values.given[name], TABLE.get(name)
        if row is None:
            yield Finding(name, value, UNKNOWN)
        elif row.needs and not any(_is_set(values, need) for need in row.needs):
            needs = " or ".join(row.needs)
            yield Finding(name, value, no_effect(f"It is read only together with {needs}, as with ingress-nginx."))
        else:
            yield Finding(name, value, row.judge(value), row.outcome(value))


def groups() -> Iterable[str]:
    """Return the groups in the order of the documents."""
    return dict.fromkeys(row.group for row in _ROWS)


_PLACES = {name: place for place, name in enumerate(TABLE)}


def _place(name: str) -> tuple[int, str]:
    return _PLACES.get(name, len(_PLACES)), name


def _is_set(values: Values, name: str) -> bool:
    value = values.text(name)
    return bool(value) and boolean(value) is not False
