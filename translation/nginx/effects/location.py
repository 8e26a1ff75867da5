"""One location: its branches, in the order in which nginx decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from translation.ingress_spec import Port
from translation.nginx.certificates import ClientCheck
from translation.nginx.effects.backend_answers import changed_answers
from translation.nginx.effects.balancing.backends import (
    claim,
    default_claim,
    own_default,
    scheme_of,
    timeouts,
)
from translation.nginx.effects.balancing.canary import canary_plugins, reads_underscores
from translation.nginx.effects.balancing.cookies import affinity_cookies
from translation.nginx.effects.balancing.mirror import mirror
from translation.nginx.effects.branches import Branch, Site, answer
from translation.nginx.effects.own_requests import default_headers, own_requests, shown, shown_statuses
from translation.nginx.effects.protection.access import (
    address_lists,
    address_plugins,
    blocked,
    blocked_addresses,
    reads_addresses,
    trusted_addresses,
)
from translation.nginx.effects.protection.authentication import Authentication, authentication
from translation.nginx.effects.protection.client_certificates import (
    certificate_branches,
    certificate_headers,
    wrong_names,
)
from translation.nginx.effects.protection.limits import limit_functions, limits_id
from translation.nginx.effects.protection.proxy_ssl import backend_tls, is_unverifiable
from translation.nginx.effects.protection.required_objects import missing_object
from translation.nginx.effects.redirects import https_redirects, location_redirect, redirects_http
from translation.nginx.effects.requests import (
    body_limit,
    forwarded,
    header_names,
    host_header,
    proxy_rewrite,
    request_id,
    unbuffered,
)
from translation.nginx.effects.responses import (
    compression,
    cors_headers,
    cors_pattern,
    hsts,
    preflights,
    response_headers,
    rewritten,
    with_headers,
)
from translation.nginx.functions.attached import attached


def location_branches(site: Site, check: ClientCheck | None) -> Iterator[Branch]:
    """Yield the branches of a location; the last one matches all remaining requests."""
    if check and check.closed:
        yield Branch(plugins=answer(403))
        return
    yield from _refusals(site, check)
    yield from wrong_names(check)
    yield from blocked(site.config)
    custom, guard = response_headers(site), authentication(site)
    if is_denied(site, custom, guard):
        yield from with_headers(site, Branch(plugins=answer(503)), {}, cors=False)
        return
    for branch in _answers(site, guard):
        yield from with_headers(site, shown(site, branch), custom or {})
        if not branch.when:
            return
    either = _satisfies_any(site, guard)
    trusted = trusted_addresses(site) if either else None
    for scheme in ("https",) if redirects_http(site) and not site.forwarded else ("http", "https"):
        if trusted:
            for branch in _served(site, scheme, check, custom or {}, guard.waived()):
                yield replace(branch, when=(*branch.when, trusted))
        yield from _served(site, scheme, check, custom or {}, guard)


def _refusals(site: Site, check: ClientCheck | None) -> Iterator[Branch]:
    """Yield the responses to clients without the required certificate; a path of the host may have a page for them."""
    page = check.values.text("auth-tls-error-page") if check else ""
    at = site.server.matching(page) if page.startswith("/") else None
    pages = list(_pages(replace(site, location=at), page, check)) if at else []
    for branch in certificate_branches(check):
        yield from (replace(each, when=(*branch.when, *each.when)) for each in pages)
        if not pages:
            yield branch


def _pages(site: Site, page: str, check: ClientCheck | None) -> Iterator[Branch]:
    """Yield the branches for a page at a path of the host; none if other conditions apply to the path."""
    custom, guard = response_headers(site), authentication(site)
    answers = (*blocked(site.config), *_answers(site, guard))
    is_answered = any(("scheme", "==", "http") not in each.when for each in answers)
    if is_denied(site, custom, guard) or is_answered or guard.functions or isinstance(_upstream(site, "https"), int):
        return
    for branch in _served(site, "https", check, custom or {}, guard):
        # Without the query, as an internal redirect of nginx: `uri` would keep it.
        rewrite = {
            "headers": branch.plugins["proxy-rewrite"]["headers"],
            "use_real_request_uri_unsafe": True,
            "regex_uri": ["^[\\s\\S]*$", page],
        }
        head = ("request_method", "==", "HEAD")
        yield replace(branch, when=(*branch.when, head), plugins={**branch.plugins, "proxy-rewrite": rewrite})
        yield replace(branch, plugins={**branch.plugins, "proxy-rewrite": {**rewrite, "method": "GET"}})


def is_denied(site: Site, custom: Mapping[str, str] | None, guard: Authentication) -> bool:
    """Return whether ingress-nginx responds with 503 at a location, whose other settings it then omits."""
    source = site.location.source
    return bool((source and source.closed) or custom is None or guard.closed or missing_object(site))


def _answers(site: Site, guard: Authentication) -> Iterator[Branch]:
    """Yield the responses that need no backend; one without conditions is the last."""
    source = site.location.source
    yield from preflights(site)
    elsewhere = location_redirect(site)
    yield from (elsewhere,) if elsewhere else https_redirects(site)
    yield from blocked_addresses(site)
    if not reads_addresses(site) and not _satisfies_any(site, guard):
        yield from address_lists(site)
    if (source and source.shut) or guard.shut or is_unverifiable(site):
        yield Branch(plugins=answer(503))


def _satisfies_any(site: Site, guard: Authentication) -> bool:
    return site.values.text("satisfy") == "any" and bool(guard.functions)


def _served(
    site: Site, scheme: str, check: ClientCheck | None, custom: Mapping[str, str], guard: Authentication
) -> Iterator[Branch]:
    """Yield the branches through which requests of a scheme reach the backend."""
    backend = _upstream(site, scheme)
    limited = limits_id(site)
    plugins: dict[str, JsonObject] = address_plugins(site)
    limit = body_limit(site)
    if limit:
        plugins["client-control"] = {"max_body_size": limit}
    fields: JsonObject = {"plugin_config_id": limited} if limited else {}
    upstream = ""
    if isinstance(backend, int):
        plugins |= answer(backend) | attached([*limit_functions(site), *guard.functions])
    else:
        upstream = backend
        plugins |= _passing(site, scheme, check, backend)
        own, guards = own_requests(site), (*limit_functions(site), *guard.functions)
        trusts = check is not None or guard.sets_headers or reads_underscores(site)
        header_functions = (*header_names(site, trusts=trusts), *host_header(site), *forwarded(site, scheme))
        guards = (*guards, *backend_tls(site, scheme))
        explained = () if own else default_headers(site)
        plugins |= attached([*header_functions, *explained, *guards, *mirror(site), *changed_answers(site), *own])
        if own and "413" in shown_statuses(site):
            plugins.pop("client-control", None)
        fields["timeout"] = timeouts(site)
    headers = cors_headers(site.values) | dict(custom) | (hsts(site) if scheme == "https" else {})
    when = (("scheme", "==", scheme),)
    pattern = cors_pattern(site.values)
    hidden = site.config.texts("hide-headers") if upstream else ()
    for cookie in affinity_cookies(site, scheme) if upstream else ():
        first = (f"cookie_{cookie.name}", "!", "~~", cookie.known)
        spread = str(_upstream(site, scheme, first=True))
        split = canary_plugins(site, site.location.backend, spread, first=True) if site.location.backend else {}
        written = rewritten(headers, pattern, cookie=cookie.text, hidden=hidden)
        yield Branch((*when, first, *cookie.when), {**plugins, **split, **written}, spread, fields)
    yield Branch(when, {**plugins, **rewritten(headers, pattern, hidden=hidden)}, upstream, fields)


def _passing(site: Site, scheme: str, check: ClientCheck | None, upstream: str) -> dict[str, JsonObject]:
    """Return the plugins for requests to the backend."""
    values, config = site.values, site.config
    rewrite = proxy_rewrite(site, scheme)
    plugins: dict[str, JsonObject] = {"proxy-rewrite": rewrite, **compression(site)}
    if config.flag("generate-request-id"):
        plugins["request-id"] = request_id()
    if check:
        certificate_headers(rewrite, check, scheme)
    if (values.text("proxy-buffering") or config.text("proxy-buffering")) != "on":
        plugins["proxy-buffering"] = unbuffered(site)
    if (values.text("proxy-request-buffering") or config.text("proxy-request-buffering")) == "off":
        plugins["proxy-control"] = {"request_buffering": False}
    if site.location.backend:
        plugins |= canary_plugins(site, site.location.backend, upstream)
    return plugins


def _upstream(site: Site, scheme: str, *, first: bool = False) -> str | int:
    """Return the upstream of a location, or the status of its response."""
    backend = site.location.backend
    if backend is None:
        return _default_upstream(site)
    key = ObjectKey("Service", site.namespace, backend.name)
    protocol = scheme_of(site) or scheme
    found = claim(site, key, backend.port, protocol, first=first, fallback=own_default(site))
    return found or default_claim(site, protocol) or 503


def _default_upstream(site: Site) -> str | int:
    key = site.nginx.default_backend
    service = site.builder.view.get(Service, key) if key else None
    if key is None or service is None or not service.ports:
        return 404
    return claim(site, key, Port(number=service.ports[0].port), "http") or 404
