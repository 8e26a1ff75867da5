"""Annotations that change requests and responses on their way: rewrites and redirects."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.annotations.access import METHOD_NOT_ALLOWED, refused_methods
from translation.annotations.reader import Annotations
from translation.plugins import Plugins, present

MOVED_PERMANENTLY = 301
_REDIRECTS = range(301, 309)
_STATUSES = range(200, 599)
"""What the gateway takes as the status of a rewritten response."""


def proxy_rewrite(annotations: Annotations) -> Plugins:
    """rewrite-target, or rewrite-target-regex with its template."""
    config: JsonObject = {}
    if target := annotations.text("rewrite-target"):
        config["uri"] = target
    pattern = annotations.text("rewrite-target-regex")
    template = annotations.text("rewrite-target-regex-template")
    if pattern and template:
        config["regex_uri"] = [pattern, template]
    elif pattern or template:
        missing = "rewrite-target-regex-template" if pattern else "rewrite-target-regex"
        annotations.warn(missing, "is missing: the pattern and its template only work together")
    return {"proxy-rewrite": config} if config else {}


def redirect(annotations: Annotations) -> Plugins:
    """http-to-https, else http-redirect with its code."""
    uri = annotations.text("http-redirect")
    if annotations.flag("http-to-https"):
        if uri:
            annotations.warn("http-redirect", "does nothing beside http-to-https; leave one of them out")
        return {"redirect": {"http_to_https": True}}
    if not uri:
        return {}
    code = annotations.number("http-redirect-code")
    if code is not None and code not in _REDIRECTS:
        annotations.warn("http-redirect-code", f"{code} is not between 301 and 308, so {MOVED_PERMANENTLY} is used")
        code = None
    return {"redirect": {"uri": uri, "ret_code": code or MOVED_PERMANENTLY}}


def response(annotations: Annotations) -> Plugins:
    """enable-response-rewrite with its options, and the methods that are refused.

    The 1.8 line refuses methods by rewriting the response. A response that is rewritten anyway leaves no room for
    that: methods are then refused before the request is sent on (quirk 37).
    """
    refused = refused_methods(annotations)
    rewrite = _response_rewrite(annotations)
    if refused and rewrite:
        abort = {"abort": {"http_status": METHOD_NOT_ALLOWED, "vars": [refused]}}
        return {"fault-injection": abort, "response-rewrite": rewrite}
    if refused:
        return {"response-rewrite": {"status_code": METHOD_NOT_ALLOWED, "vars": refused}}
    return {"response-rewrite": rewrite} if rewrite else {}


def _response_rewrite(annotations: Annotations) -> JsonObject:
    if not annotations.flag("enable-response-rewrite"):
        return {}
    code = annotations.number("response-rewrite-status-code")
    if code and code not in _STATUSES:
        annotations.warn("response-rewrite-status-code", f"{code} is not a status, so it is left out")
        code = None
    body = annotations.text("response-rewrite-body", block=True)
    headers = {
        "add": [f"{name}:{value}" for name, value in _headers(annotations, "response-rewrite-add-header")],
        "set": dict(_headers(annotations, "response-rewrite-set-header")),
        "remove": annotations.items("response-rewrite-remove-header"),
    }
    config = {
        "status_code": code,
        "body": body,
        "body_base64": annotations.flag("response-rewrite-body-base64"),
        "headers": present(headers),
    }
    return present(config)


def _headers(annotations: Annotations, name: str) -> list[tuple[str, str]]:
    """Return names and values of a list of `name:value`; only the first colon divides them (quirk 37)."""
    found = []
    for item in annotations.items(name):
        header, colon, value = item.partition(":")
        if header.strip() and colon:
            found.append((header.strip(), value.strip()))
        else:
            annotations.warn(name, f"{item!r} is left out; write name:value")
    return found
