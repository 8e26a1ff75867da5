"""Annotations that a ConfigMap forbids: by their risk, and by words in their values.

Source: docs/user-guide/nginx-configuration/annotations-risk.md of ingress-nginx 1.15. Others have a low risk.
"""

from __future__ import annotations

from collections.abc import Mapping

from translation.nginx.tables.annotations import SNIPPETS
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.findings import Finding

_LEVELS = ("low", "medium", "high", "critical")

_MEDIUM = """
    affinity-mode allowlist-source-range app-root auth-cache-duration auth-cache-key auth-proxy-set-headers auth-realm
    auth-request-redirect auth-response-headers auth-secret auth-signin-redirect-param auth-tls-secret
    auth-tls-verify-client canary-by-cookie canary-by-header canary-by-header-pattern canary-by-header-value
    cors-allow-headers cors-allow-methods cors-allow-origin cors-expose-headers custom-headers denylist-source-range
    fastcgi-index fastcgi-params-configmap force-ssl-redirect opentelemetry-operation-name permanent-redirect
    preserve-trailing-slash proxy-body-size proxy-cookie-domain proxy-cookie-path proxy-next-upstream
    proxy-redirect-from proxy-redirect-to proxy-ssl-ciphers proxy-ssl-secret rewrite-target session-cookie-domain
    session-cookie-expires session-cookie-max-age session-cookie-name session-cookie-path temporal-redirect
    x-forwarded-prefix
"""
_HIGH = """
    auth-signin auth-tls-error-page auth-tls-match-cn auth-url mirror-host mirror-target modsecurity-transaction-id
    proxy-ssl-name server-alias upstream-hash-by
"""

_RISKS: Mapping[str, int] = {
    **dict.fromkeys(_MEDIUM.split(), 1),
    **dict.fromkeys(_HIGH.split(), 2),
    **dict.fromkeys(SNIPPETS, 3),
}


def why_forbidden(finding: Finding, config: Config) -> str:
    """Return why an annotation is not allowed; empty if it is.

    ingress-nginx looks for the words when an Ingress is created or changed; here they also apply to existing ones.
    """
    risk, level = _RISKS.get(finding.annotation, 0), config.text("annotations-risk-level").lower()
    if risk > (_LEVELS.index(level) if level in _LEVELS else 0):
        return f"{finding.annotation} is not allowed: its risk is {_LEVELS[risk]}, above annotations-risk-level"
    if finding.annotation in SNIPPETS and not config.flag("allow-snippet-annotations"):
        return f"{finding.annotation} is not allowed"
    if any(word in finding.value for word in config.texts("annotation-value-word-blocklist")):
        return f"{finding.annotation} contains a word of annotation-value-word-blocklist"
    return ""
