"""Annotations that change requests and responses: rewrites and redirects."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from translation.annotations.access import METHOD_NOT_ALLOWED, refused_methods
from translation.annotations.reader import Annotations
from translation.plugins.configs import Plugins, present
from translation.plugins.rewrites import rewrite

MOVED_PERMANENTLY = 301
_REDIRECTS = range(301, 309)
_STATUSES = range(200, 599)
"""Values that the gateway accepts as the status of a rewritten response."""
_ADDABLE = ValuePattern(r"[^:]*[^:/]")
"""Values that its schema accepts for an added header; a header that is set may have any value."""


def proxy_rewrite(annotations: Annotations) -> Plugins:
    """rewrite-target, or rewrite-target-regex with its template."""
    config: JsonObject = {}
    if target := annotations.text("rewrite-target"):
        config["uri"] = target
        if not target.startswith("/"):
            annotations.error("rewrite-target", f"{target!r} is not a path; begin it with /")
    pattern = annotations.text("rewrite-target-regex")
    template = annotations.text("rewrite-target-regex-template")
    if pattern and template:
        config["regex_uri"] = rewrite(pattern, template)
    elif pattern or template:
        missing = "rewrite-target-regex-template" if pattern else "rewrite-target-regex"
        annotations.warn(missing, "is missing: the pattern and its template only work together")
    return {"proxy-rewrite": config} if config else {}


def redirect(annotations: Annotations) -> Plugins:
    """http-to-https, else http-redirect with its code.

    A code together with http-to-https has no effect in the gateway. It is sent because 1.8 sends it, so that records
    are adopted.
    """
    uri = annotations.text("http-redirect")
    code = _redirect_code(annotations)
    if annotations.flag("http-to-https"):
        if uri:
            annotations.warn("http-redirect", "has no effect together with http-to-https; remove one of them")
        return {"redirect": present({"http_to_https": True, "ret_code": code})}
    if len(uri) == 1:
        remedy = "the gateway requires two characters or more; write a URL, or $scheme://$http_host/ for the root"
        annotations.error("http-redirect", f"{uri!r} is too short: {remedy}")
    return {"redirect": {"uri": uri, "ret_code": code or MOVED_PERMANENTLY}} if uri else {}


def _redirect_code(annotations: Annotations) -> int | None:
    code = annotations.number("http-redirect-code")
    if code is None or code in _REDIRECTS:
        return code
    annotations.warn("http-redirect-code", f"{code} is ignored: it must be between 301 and 308")
    return None


def response(annotations: Annotations) -> Plugins:
    """enable-response-rewrite with its options, and the methods that are rejected.

    1.8 rejects methods by rewriting the response. If the response is rewritten anyway, methods are instead rejected
    before the request is forwarded (quirk 37).
    """
    refused = refused_methods(annotations)
    rewrite = _response_rewrite(annotations)
    if refused and rewrite:
        abort = {"abort": {"http_status": METHOD_NOT_ALLOWED, "vars": [refused]}}
        return {"fault-injection": abort, "response-rewrite": rewrite}
    if refused:
        return {"response-rewrite": {"status_code": METHOD_NOT_ALLOWED, "vars": refused}}
    return {} if rewrite is None else {"response-rewrite": rewrite}


def _response_rewrite(annotations: Annotations) -> JsonObject | None:
    """Return the configuration of the plugin; None if it is not enabled."""
    if not annotations.flag("enable-response-rewrite"):
        return None
    code = annotations.number("response-rewrite-status-code")
    if code and code not in _STATUSES:
        annotations.warn("response-rewrite-status-code", f"{code} is ignored: it is not a valid status")
        code = None
    headers = {
        "add": list(_added(annotations)),
        "set": dict(_headers(annotations, "response-rewrite-set-header")),
        "remove": annotations.items("response-rewrite-remove-header"),
    }
    config = {
        "status_code": code,
        "body": annotations.verbatim("response-rewrite-body"),
        "body_base64": annotations.flag("response-rewrite-body-base64"),
        "headers": present(headers),
    }
    return present(config)


def _added(annotations: Annotations) -> Iterator[str]:
    for header, value in _headers(annotations, "response-rewrite-add-header"):
        if _ADDABLE.fits(value):
            yield f"{header}:{value}"
        else:
            message = (
                f"the value {value!r} is ignored: the gateway does not add values that are empty, end with / or"
                " contain a colon"
            )
            annotations.warn("response-rewrite-add-header", f"{message}; use response-rewrite-set-header")


def _headers(annotations: Annotations, name: str) -> list[tuple[str, str]]:
    """Return names and values of a list of `name:value`; only the first colon separates them (quirk 37).

    White space after it is insignificant in a header. It is kept because the records of 1.8 contain it.
    """
    found = []
    for item in annotations.items(name):
        header, colon, value = item.partition(":")
        if header.strip() and colon:
            found.append((header.strip(), value))
        else:
            annotations.warn(name, f"{item!r} is ignored; write name:value")
    return found
