"""Verdicts that depend on the value of an annotation, and verdicts that several annotations share."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from translation.nginx.tables.checks import LISTS, ORIGIN, ORIGIN_LIST, URLS_AND_SPACES
from translation.nginx.tables.destinations import mirror_of
from translation.nginx.tables.gateway_fields import COOKIE_KEY, ROUTE_HOST
from translation.nginx.tables.request_hosts import VARIABLES, is_request_host, request_host
from translation.nginx.tables.rows import Judge
from translation.nginx.tables.values import Values, boolean, integer, size
from translation.nginx.tables.verdicts import EXACT, Verdict, approximate, no_effect, refused

BUFFER = 4096
"""The proxy_buffer_size of gateways, in bytes: the default of nginx."""

STICKY = approximate(
    "The gateway chooses the backend by a hash of the cookie. A client may change its backend once, after its first "
    "request; when endpoints change, a small share of clients does."
)
SNIPPETS = frozenset(
    {"configuration-snippet", "server-snippet", "stream-snippet", "auth-snippet", "modsecurity-snippet"}
)
"""Annotations with raw nginx configuration: never executed."""

WAF = frozenset({"enable-modsecurity", "enable-owasp-core-rules", "modsecurity-transaction-id"})

SNIPPET = refused(
    "It contains nginx configuration, which is never executed; use a typed annotation or a plugin.", protects=True
)
_PERFORMANCE = TextPattern(
    r"(gzip|brotli|keepalive|lingering|proxy_buffer|proxy_(busy_|temp_|max_temp_)|proxy_(connect|read|send)_timeout$"
    r"|client_(body|header)_(buffer|timeout)|large_client_header_buffers|output_buffers|postpone_output|send_timeout"
    r"|open_file_cache|sendfile|tcp_no|aio|directio|read_ahead|access_log|error_log|log_not_found|server_tokens)"
)
"""Directives that change neither responses nor who gets them."""

_DIRECTIVE = TextPattern(r"[^;{}]*[;{}]|[^;{}]+$")
_COMMENT = TextPattern(r"#.*")
_NAMED = TextPattern(r"\$\{?[a-z]")
_VARIABLE = TextPattern(r"\$\{?[a-z_]+\}?")
_TUNING = approximate("The snippet only tunes performance and is ignored (strict: false).")
BUFFERS = no_effect("Sizes of buffers are settings of the whole gateway (nginx_config in config.yaml).")
NOT_IN_GATEWAY = "Gateways have no such setting for one route"
KEPT_AUTH = approximate("With this value ingress-nginx drops the authentication; this controller keeps it.")
LATE = approximate(
    "A change of its ConfigMap takes effect immediately; in ingress-nginx with the next change of an Ingress."
)
MIRRORED = approximate(
    "The target is not valid: nothing is mirrored. ingress-nginx sends a copy with the path `/_mirror-…` to the host."
)
CACHE = approximate("Each worker process of the gateway caches the responses of the authentication service separately.")
ERRORS = approximate("Requests beyond `limit-connections` get the error without a page.")
KEEPALIVE = approximate("Connections to the authentication service are kept alive with the gateway's defaults.")


_TARGET = ValuePattern(r"(?:[^$]|\$\$|\$[0-9]+|\$[a-zA-Z_][a-zA-Z0-9_]*)*", 4095)
"""A rewrite target that gateways accept; they may need a slash before it."""


def tunes_only(snippet: str) -> bool:
    """Return whether every directive of a snippet only tunes performance; blocks never do."""
    plain = _COMMENT.sub("", snippet)
    words = [part.split()[0].rstrip(";") for part in _DIRECTIVE.findall(plain) if part.strip()]
    return bool(words) and "{" not in plain and "}" not in plain and all(map(_PERFORMANCE.match, words))


def lenient(name: str, text: str) -> Verdict | None:
    """Return the verdict on an annotation where `strict: false` relaxes it, or None."""
    return _TUNING if name in SNIPPETS and tunes_only(text) else None


def protocol(text: str) -> Verdict:
    """Judge backend-protocol."""
    match text.upper():
        case "HTTP" | "HTTPS":
            return EXACT
        case "GRPC" | "GRPCS":
            return approximate("The backend gets every request with the headers Content-Type and TE of gRPC.")
        case "AUTO_HTTP":
            return EXACT
        case "FCGI":
            return refused("Gateways do not support FastCGI; put an HTTP server in front of the backend.")
        case _:
            return no_effect("The value is not a protocol, so HTTP is used, as with ingress-nginx.")


def next_upstream(text: str) -> Verdict:
    """Judge proxy-next-upstream."""
    known = {"error", "timeout", "off", "non_idempotent"}
    if all(word in known or word.startswith("http_") for word in text.split()):
        return EXACT
    return approximate("Only connection errors, timeouts and responses with a listed status are retried.")


def verify_backend(values: Values) -> Verdict | None:
    """Judge proxy-ssl-verify by the requests that the gateway cannot verify."""
    protocol = values.text("backend-protocol").upper()
    if values.text("proxy-ssl-verify") != "on" or protocol not in ("HTTPS", "GRPCS", "AUTO_HTTP"):
        return None
    if protocol == "GRPCS":
        return refused("APISIX 3.18 cannot verify the certificate of a gRPC backend; 3.19 can.", protects=True)
    again = set(values.text("proxy-next-upstream").split()) - {"error", "timeout", "non_idempotent", "off"}
    if values.has("custom-http-errors") or values.text("proxy-http-version") == "1.0" or again:
        return refused(
            "Certificates of backends cannot be verified together with custom-http-errors, statuses in"
            " proxy-next-upstream or HTTP/1.0.",
            protects=True,
        )
    return None


def buffer_size(values: Values) -> Verdict | None:
    """Judge proxy-buffer-size."""
    found = size(values.text("proxy-buffer-size")) or 0
    if found < BUFFER:
        return approximate("Response headers may have the size that the gateway permits.")
    protocol = values.text("backend-protocol").upper()
    if found == BUFFER or protocol in ("GRPC", "GRPCS"):
        return None
    if values.has("proxy-ssl-secret") or values.text("proxy-request-buffering") == "off":
        return approximate("Larger response headers need proxy_buffer_size in the gateway's config.yaml.")
    return None


def backend_name(values: Values) -> Verdict | None:
    """Judge proxy-ssl-name."""
    if values.text("backend-protocol").upper() != "GRPCS":
        return None
    return approximate("The server name in the handshake with a gRPC backend is the Host of the request.")


def rewrite(text: str) -> Verdict:
    """Judge rewrite-target."""
    if not _TARGET.fits(text):
        return refused("A $ must be followed by the number of a group or by the name of a variable.", protects=True)
    if _NAMED.found(text):
        return approximate("If the target contains variables of nginx, groups of the path are not replaced.")
    if text.strip().startswith(("/", "http://", "https://")):
        return EXACT
    return approximate("A rewritten path without a slash gets one in WebSocket and gRPC requests.")


def alias(text: str) -> Verdict:
    """Judge server-alias."""
    names = (part.strip() for part in text.split(","))
    if not all(name.startswith("~") or ROUTE_HOST.fits(name) for name in names if name):
        return approximate("Names with a wildcard at the end, or with characters that hosts do not have, are ignored.")
    if "~" in text:
        return approximate(
            "Names that match a regular expression are served without client certificates, and only if no other"
            " route for every host has a longer path."
        )
    return EXACT


def error_page(text: str) -> Verdict:
    """Judge auth-tls-error-page."""
    if not text.startswith("/") and len(text) > 1:
        return EXACT
    return approximate(
        "If the path of the page is a regular expression or has authentication, address lists or CORS, a client without"
        " a valid certificate gets 400 instead."
    )


_NO_NUMBER = no_effect("The value is not a whole number without a unit, so the default applies, as in ingress-nginx.")
_NO_LIMIT = no_effect("Without a positive number there is no limit, as in ingress-nginx.")
_NO_ORIGIN = no_effect(
    "No item is an origin such as https://example.org: as in ingress-nginx, no response gets CORS headers."
)
_ANY_ORIGIN = no_effect("An item is not an origin: as in ingress-nginx, every origin is allowed.")


def number(text: str) -> Verdict:
    """Judge a number that ingress-nginx replaces by the default if it is not one."""
    return EXACT if not text or integer(text) is not None else _NO_NUMBER


def limit(text: str) -> Verdict:
    """Judge a limit."""
    return EXACT if (integer(text) or 0) > 0 else _NO_LIMIT


def redirect_code(last: int) -> Judge:
    """Return a judge of the status of a redirect, which is at most `last`."""
    otherwise = no_effect(f"The value is not from 300 to {last}, so the default applies, as in ingress-nginx.")
    return lambda text: EXACT if not text or 300 <= (integer(text) or 0) <= last else otherwise


def origins(text: str) -> Verdict:
    """Judge cors-allow-origin."""
    given = [part.strip() for part in text.split(",") if part.strip()]
    if not given or "*" in given:
        return EXACT
    if not ORIGIN_LIST.fits(text.replace(" ", "")):
        return _ANY_ORIGIN
    return EXACT if any(map(ORIGIN.fits, given)) else _NO_ORIGIN


def timeout(text: str) -> Verdict:
    """Judge a timeout."""
    if (found := number(text)) is not EXACT:
        return found
    return approximate("A timeout of 0 for connecting or sending lasts 1 ms.") if integer(text) == 0 else EXACT


def auth_type(text: str) -> Verdict:
    """Judge auth-type."""
    return refused("Gateways have no Digest authentication.", protects=True) if text == "digest" else EXACT


def auth_redirect(text: str) -> Verdict:
    """Judge auth-request-redirect."""
    return EXACT if URLS_AND_SPACES(text) else KEPT_AUTH


def auth_duration(text: str) -> Verdict:
    """Judge auth-cache-duration."""
    return CACHE if LISTS(text) else KEPT_AUTH


def hash_by(text: str) -> Verdict:
    """Judge upstream-hash-by."""
    if "$" not in text:
        return approximate("Without a variable all requests have one key; the gateway then hashes the client address.")
    return EXACT


def if_on(when_on: Verdict) -> Judge:
    """Return a judge of a boolean whose true value has this verdict."""
    return lambda text: when_on if boolean(text) else EXACT


def modsecurity(text: str) -> Verdict:
    """Judge an annotation that enables ModSecurity."""
    return refused("Gateways have no ModSecurity; the path is closed.", protects=True) if boolean(text) else EXACT


def vhost(text: str) -> Verdict:
    """Judge upstream-vhost."""
    if is_request_host(request_host(text, dict.fromkeys(VARIABLES, "0"))):
        return EXACT
    return refused(
        "Gateways send a Host of letters, digits, dots, hyphens and underscores, with or without a port; of the"
        " variables, only $namespace, $service_name, $service_port and $ingress_name are supported.",
        protects=True,
    )


def cookie_name(text: str) -> Verdict:
    """Judge session-cookie-name."""
    if COOKIE_KEY.fits(text):
        return EXACT
    return approximate("Gateways cannot hash a cookie with this name: the cookie is INGRESSCOOKIE.")


def cookie_path(text: str) -> Verdict:
    """Judge session-cookie-path."""
    return approximate("The path of the cookie ends before the part with a colon.") if ":" in text else EXACT


def cookie_domain(text: str) -> Verdict:
    """Judge session-cookie-domain."""
    return approximate("A domain with a colon is omitted; browsers reject such a cookie.") if ":" in text else EXACT


def cookie_attribute(text: str) -> Verdict:
    """Judge proxy-cookie-domain and proxy-cookie-path."""
    return approximate("A regular expression is not applied to cookies.") if text.startswith("~") else EXACT


def proxy_redirect(text: str) -> Verdict:
    """Judge proxy-redirect-from."""
    return approximate("A regular expression is not applied to redirects.") if text.startswith("~") else EXACT


def mirror_target(text: str) -> Verdict:
    """Judge mirror-target."""
    if not text:
        return no_effect("It is empty.")
    if mirror_of(text):
        return EXACT
    if text.startswith(("http://", "https://")):
        return refused(
            "Nothing is mirrored: the target must begin with a literal host and port; use variables only after the"
            " first slash, or $request_uri alone."
        )
    return approximate("The target is not a URL: nothing is mirrored. ingress-nginx sends the copy to the host itself.")


def mirror_body(text: str) -> Verdict:
    """Judge mirror-request-body."""
    return approximate("The copy has no Content-Length, either.") if text == "off" else EXACT


def canary_behavior(text: str) -> Verdict:
    """Judge affinity-canary-behavior."""
    return approximate("Clients stay with the canary, as with sticky.") if text == "legacy" else EXACT
