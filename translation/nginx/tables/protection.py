"""Rows of the annotations that protect a path: client certificates, authentication, address lists, and limits."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import LONGEST_LIST
from translation.nginx.tables import checks
from translation.nginx.tables.judges import (
    CACHE,
    KEEPALIVE,
    KEPT_AUTH,
    LATE,
    NOT_IN_GATEWAY,
    auth_duration,
    auth_redirect,
    auth_type,
    error_page,
    limit,
)
from translation.nginx.tables.rows import Row
from translation.nginx.tables.verdicts import EXACT, approximate

_AUTH_TLS = ("auth-tls-secret",)
_AUTH_URL_SET = ("auth-url",)
_BASIC = ("auth-type",)
_LIMITS = ("limit-rps", "limit-rpm", "limit-connections")

PROTECTION = (
    # client certificates
    Row("auth-tls-secret", "client certificates", EXACT, checks.BASIC, "refused"),
    Row("auth-tls-verify-client", "client certificates", needs=_AUTH_TLS),
    Row("auth-tls-verify-depth", "client certificates", EXACT, checks.is_natural, "refused", _AUTH_TLS),
    Row(
        "auth-tls-error-page",
        "client certificates",
        error_page,
        checks.one_word(r"(@[A-Za-z0-9_-]+|((https?://)?[A-Za-z0-9\-.]+(:\d+)?)?(/[A-Za-z0-9\-_.]+)*/?)"),
        "refused",
        _AUTH_TLS,
    ),
    Row(
        "auth-tls-pass-certificate-to-upstream",
        "client certificates",
        EXACT,
        checks.empty_or(checks.is_bool),
        "refused",
        _AUTH_TLS,
    ),
    Row(
        "auth-tls-match-cn",
        "client certificates",
        EXACT,
        checks.empty_or(checks.is_common_name),
        "refused",
        _AUTH_TLS,
    ),
    # authentication
    Row("auth-type", "authentication", auth_type, checks.empty_or(checks.one_of("basic", "digest")), "refused"),
    Row("auth-secret", "authentication", EXACT, checks.BASIC, "closed", _BASIC),
    Row(
        "auth-secret-type",
        "authentication",
        EXACT,
        checks.empty_or(checks.one_of("auth-file", "auth-map")),
        checks.secret_type_outcome,
        _BASIC,
    ),
    Row("auth-realm", "authentication", EXACT, checks.WORDS, "refused", _BASIC),
    Row("auth-url", "authentication", EXACT, checks.URLS_AND_VARIABLES, "refused"),
    Row(
        "auth-method",
        "authentication",
        EXACT,
        checks.empty_or(checks.one_of(*checks.METHODS)),
        "closed",
        _AUTH_URL_SET,
    ),
    Row(
        "auth-signin",
        "authentication",
        EXACT,
        checks.is_signin,
        checks.if_spaced("refused", "default"),
        _AUTH_URL_SET,
    ),
    Row("auth-signin-redirect-param", "authentication", EXACT, checks.URLS_AND_SPACES, needs=_AUTH_URL_SET),
    Row(
        "auth-response-headers",
        "authentication",
        EXACT,
        checks.like(r" *([A-Za-z0-9_-]+)? *(, *([A-Za-z0-9_-]+)? *)*"),
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-request-redirect", "authentication", auth_redirect, checks.is_one_word, "refused", _AUTH_URL_SET),
    Row(
        "auth-proxy-set-headers",
        "authentication",
        LATE,
        checks.BASIC,
        needs=_AUTH_URL_SET,
    ),
    Row("auth-always-set-cookie", "authentication", EXACT, checks.is_bool, needs=_AUTH_URL_SET, if_wrong=KEPT_AUTH),
    Row("auth-cache-key", "authentication", CACHE, checks.VARIABLES, needs=_AUTH_URL_SET),
    Row(
        "auth-cache-duration",
        "authentication",
        auth_duration,
        checks.are_durations,
        "closed",
        _AUTH_URL_SET,
    ),
    Row("auth-keepalive", "authentication", KEEPALIVE, checks.is_int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-requests", "authentication", KEEPALIVE, checks.is_int, needs=_AUTH_URL_SET),
    Row("auth-keepalive-share-vars", "authentication", KEEPALIVE, checks.is_bool, needs=_AUTH_URL_SET),
    Row("auth-keepalive-timeout", "authentication", KEEPALIVE, checks.is_int, needs=_AUTH_URL_SET),
    Row("enable-global-auth", "authentication", EXACT, checks.is_bool),
    Row("satisfy", "authentication", EXACT, checks.one_of("any", "all")),
    # address lists
    Row(
        "whitelist-source-range",
        "address lists",
        EXACT,
        checks.empty_or(checks.are_networks),
        "closed",
        longest=LONGEST_LIST,
    ),
    Row("allowlist-source-range", "address lists", EXACT, checks.are_networks, "closed", longest=LONGEST_LIST),
    Row("denylist-source-range", "address lists", EXACT, checks.are_networks, "closed", longest=LONGEST_LIST),
    # limits
    Row("limit-rps", "limits", limit, checks.empty_or(checks.is_int), "refused"),
    Row("limit-rpm", "limits", limit, checks.empty_or(checks.is_int), "refused"),
    Row("limit-connections", "limits", limit, checks.empty_or(checks.is_int), "refused"),
    Row("limit-burst-multiplier", "limits", EXACT, checks.at_least(1), "refused", _LIMITS),
    Row(
        "limit-whitelist",
        "limits",
        EXACT,
        checks.empty_or(checks.are_networks),
        "refused",
        _LIMITS,
        longest=LONGEST_LIST,
    ),
    Row(
        "limit-allowlist",
        "limits",
        EXACT,
        checks.empty_or(checks.are_networks),
        "refused",
        _LIMITS,
        longest=LONGEST_LIST,
    ),
    Row("limit-rate", "limits", approximate(f"{NOT_IN_GATEWAY}: responses are not slowed down."), checks.is_int),
    Row("limit-rate-after", "limits", approximate(f"{NOT_IN_GATEWAY}: responses are not slowed down."), checks.is_int),
)
