"""Requests to backends that a function sends, because the gateway cannot inspect a response before it forwards it.

They are needed for error pages of another backend (custom-http-errors), for retries after an error response
(proxy-next-upstream), for HTTP/1.0, for paths without a slash at their beginning, and for large response headers.
"""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from translation.ingress_spec import Port
from translation.nginx.effects.balancing.backends import claim, default_claim, never_reads, scheme_of, timeouts
from translation.nginx.effects.branches import Branch, Site
from translation.nginx.effects.requests import body_limit
from translation.nginx.functions.attached import Function, attached
from translation.nginx.functions.proxying import DEFAULT, EMPTY, SEND_REQUEST
from translation.nginx.tables.judges import BUFFER
from translation.nginx.tables.values import size
from translation.plugins.rewrites import group_count

_STATUS = "http_"
_TRIES = 3
_MOST_WAITED = 600
"""Maximum timeouts in seconds where teams share a gateway: the function also waits after its client has left."""


def own_requests(site: Site) -> tuple[Function, ...]:
    """Return the functions that send requests to the backend in place of the gateway, if they are needed."""
    errors = _errors(site)
    again = _retry_conditions(site)
    by_status = any(word != "error" for word in again)
    times = _times(site) | ({"late": True} if never_reads(site) else {})
    optional: JsonObject = {
        "any_method": "non_idempotent" in _next_upstream(site),
        "version": 1.0 if site.values.text("proxy-http-version") == "1.0" else 0,
        "head": _large_head(site),
        "bare": _bare(site),
    }
    asked = any(optional[name] for name in ("version", "head", "bare"))
    if not _can_send_requests(site) or not (errors or by_status or "late" in times or asked):
        return ()
    tries = site.values.number("proxy-next-upstream-tries", site.config.number("proxy-next-upstream-tries"))
    wanted: JsonObject = {
        "again": dict.fromkeys(again, True),
        "tries": tries or _TRIES,
        "timeout": times,
        "namespace": site.namespace,
    }
    wanted |= {name: value for name, value in optional.items() if value}
    limit = body_limit(site)
    if errors:
        wanted |= {"errors": errors} | ({"limit": limit} if limit else {})
    empty = (Function(EMPTY, {"errors": errors}),) if errors and "503" in errors["codes"] else ()
    return (*empty, Function(SEND_REQUEST, wanted, sends_request=True))


def _times(site: Site) -> JsonObject:
    """Return the timeouts of requests that the function sends."""
    found = timeouts(site)
    is_shared = site.builder.options.plugins == "reviewed"
    return {name: min(value, _MOST_WAITED) for name, value in found.items()} if is_shared else found


def _bare(site: Site) -> int:
    """Return a number if a path is rewritten to one without a slash; 0 if not.

    nginx sends such a path as it is. The gateway would append it to a host name, so that the record adds a slash, which
    the function removes, unless `proxy-rewrite` found the group of this number: that pair adds none.
    """
    target = site.location.target
    return group_count(site.location.path) + 1 if target and not target.startswith("/") else 0


def _large_head(site: Site) -> int:
    """Return the maximum size of a response header if it is above that of the gateway itself; 0 if it is not.

    Requests with a client certificate, or whose bodies are not buffered, are left to the gateway.
    """
    found = size(site.values.text("proxy-buffer-size")) or 0
    streams = site.values.text("proxy-request-buffering") or site.config.text("proxy-request-buffering")
    left = site.values.has("proxy-ssl-secret") or streams == "off"
    return found if found > BUFFER and not left else 0


def shown_statuses(site: Site) -> JsonObject:
    """Return the statuses for which the backend for errors is used, as a set that Lua reads.

    Functions send no requests to gRPC backends, so a rejected request gets the status without a page.
    """
    errors = _errors(site) if _can_send_requests(site) else None
    found: JsonObject = errors["codes"] if errors else {}
    return found


def shown_by_ingress(site: Site) -> tuple[str, ...]:
    """Return the statuses that have pages at some path of the Ingress."""
    return _statuses(site) if _can_send_requests(site) else ()


def shown(site: Site, branch: Branch) -> Branch:
    """Return a branch that rejects requests, with the page of the backend for errors if there is one for its status."""
    status = branch.plugins.get("fault-injection", {}).get("abort", {}).get("http_status")
    errors = _errors(site)
    if not errors or str(status) not in errors["codes"] or "upstream" not in errors:
        return branch
    wanted = {"errors": errors, "refused": status, "timeout": _times(site)}
    return replace(
        branch, plugins=attached([Function(SEND_REQUEST, wanted, sends_request=True)]), upstream=errors["upstream"]
    )


def _can_send_requests(site: Site) -> bool:
    """Return whether functions can send requests to the backend."""
    return scheme_of(site) in ("http", "https", "")


def _statuses(site: Site) -> tuple[str, ...]:
    """Return the statuses that the annotation or the ConfigMap lists."""
    own = site.values.text("custom-http-errors")
    return tuple(_codes(own)) if own else site.config.texts("custom-http-errors")


def _errors(site: Site) -> JsonObject | None:
    """Return the statuses for which another backend serves the page, and that backend; None without any."""
    own, codes, headers = site.values.text("custom-http-errors"), _statuses(site), _about(site)
    if not codes or not headers:
        return None
    body: JsonObject = {"codes": dict.fromkeys(codes, True), "headers": headers}
    body["without"] = 500 if not own and "404" in codes else 404
    if site.values.flag("disable-proxy-intercept-errors", site.config.flag("disable-proxy-intercept-errors")):
        body["own_only"] = True
    upstream = _upstream(site, annotated=bool(own))
    return body | ({"upstream": upstream} if upstream else {})


def default_headers(site: Site) -> tuple[Function, ...]:
    """Return the function that adds headers to requests which the backend of default-backend gets instead."""
    upstream, headers = default_claim(site, "http"), _about(site)
    return (Function(DEFAULT, {"default": {"upstream": upstream, "headers": headers}}),) if upstream else ()


def _about(site: Site) -> JsonObject:
    """Return the headers with the names of the Ingress and the Service; none for the default backend."""
    source, backend = site.location.source, site.location.backend
    if source is None or backend is None:
        return {}
    return {
        "X-Namespace": site.namespace,
        "X-Ingress-Name": source.meta.name,
        "X-Service-Name": backend.name,
        "X-Service-Port": backend.port.name or str(backend.port.number),
    }


def _codes(text: str) -> list[str]:
    """Return the statuses in an annotation; none if one of them is not a number."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    return found if all(map(str.isdecimal, found)) else []


def _upstream(site: Site, *, annotated: bool) -> str:
    """Return the upstream for errors: of the annotation default-backend, or else that of the settings."""
    found = default_claim(site, "http") if annotated else ""
    if found:
        return found
    key: ObjectKey | None = site.nginx.default_backend
    service = site.builder.view.get(Service, key) if key else None
    return claim(site, key, Port(number=service.ports[0].port), "http") if key and service and service.ports else ""


def _next_upstream(site: Site) -> list[str]:
    return (site.values.text("proxy-next-upstream") or site.config.text("proxy-next-upstream")).split()


def _retry_conditions(site: Site) -> list[str]:
    """Return when to try the next endpoint: `error`, and statuses."""
    words = _next_upstream(site)
    statuses = [word.removeprefix(_STATUS) for word in words if word.startswith(_STATUS)]
    failures = ["error"] if {"error", "timeout"} & set(words) else []
    return [] if "off" in words else [*failures, *statuses]
