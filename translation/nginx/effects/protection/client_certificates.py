"""Client certificates: the headers about them for backends, and which certificates are accepted."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import JsonObject
from translation.nginx.certificates import ClientCheck
from translation.nginx.effects.branches import Branch, answer

_HEADERS = {
    "ssl-client-verify": "$ssl_client_verify",
    "ssl-client-subject-dn": "$ssl_client_s_dn",
    "ssl-client-issuer-dn": "$ssl_client_i_dn",
    "ssl-client-cert": "$ssl_client_escaped_cert",
}


def certificate_headers(rewrite: JsonObject, check: ClientCheck, scheme: str) -> None:
    """Add the headers about the client's certificate to those of a request; they replace headers that a client sent."""
    passed = check.values.flag("auth-tls-pass-certificate-to-upstream")
    headers = {name: text for name, text in _HEADERS.items() if passed or name != "ssl-client-cert"}
    if check.mode == "off":
        headers = {"ssl-client-verify": "NONE"}
    if scheme == "https":
        rewrite["headers"]["set"] |= headers
    rewrite["headers"]["remove"] += [name for name in _HEADERS if scheme != "https" or name not in headers]


def wrong_names(check: ClientCheck | None) -> tuple[Branch, ...]:
    """Return the branch that rejects requests without a certificate whose name matches, for http and https."""
    pattern = check.values.text("auth-tls-match-cn") if check else ""
    return (Branch((("ssl_client_s_dn", "!", "~~", pattern),), answer(403)),) if pattern else ()


def redirects(page: str) -> bool:
    """Return whether an error page is an address, which nginx returns as it is; gateways need two characters."""
    return len(page) > 1 and not page.startswith(("/", "@"))


def certificate_branches(check: ClientCheck | None) -> Iterator[Branch]:
    """Yield the responses to clients without the required certificate."""
    if check is None or check.mode in ("off", "optional_no_ca"):
        return
    page = check.values.text("auth-tls-error-page")
    wrong = (
        ("ssl_client_verify", "~~", "^FAILED")
        if check.mode == "optional"
        else ("ssl_client_verify", "!", "==", "SUCCESS")
    )
    if redirects(page):
        plugins: dict[str, JsonObject] = {"redirect": {"uri": page, "ret_code": 302}}
    elif page.startswith("@"):
        plugins = answer(500)  # there is no such location
    else:
        # Also if the handshake requires a certificate: the handshake of rules without a host does not request one.
        plugins = answer(400)
    yield Branch((("scheme", "==", "https"), wrong), plugins)
