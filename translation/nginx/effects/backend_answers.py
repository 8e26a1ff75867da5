"""Responses of backends: their redirects and cookies are rewritten to the public host and paths."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Site
from translation.nginx.functions.attached import Function
from translation.nginx.functions.headers import ANSWERS
from translation.nginx.tables.values import cookie_pair

_OFF = ("", "off")
_OF_PROXY = "http://upstream_balancer"
"""The address that nginx has for every backend. With `default`, redirects to it are changed."""


def changed_answers(site: Site) -> tuple[Function, ...]:
    """Return the function that changes redirects and cookies, if the Ingress or the ConfigMap enables that."""
    wanted: JsonObject = {}
    redirect = _redirect(site)
    if redirect:
        wanted["redirect"] = redirect
    path = cookie_pair(_text(site, "proxy-cookie-path"))
    if path:
        wanted["cookie_path"] = {"from": path[0], "to": path[1]}
    domain = cookie_pair(_text(site, "proxy-cookie-domain"))
    if domain:
        wanted["cookie_domain"] = {"from": domain[0].lstrip(".").lower(), "to": domain[1].lstrip(".")}
    return (Function(ANSWERS, wanted, late=True),) if wanted else ()


def _redirect(site: Site) -> JsonObject | None:
    start, to = _text(site, "proxy-redirect-from"), _text(site, "proxy-redirect-to")
    if start == "default":
        return {"from": _OF_PROXY, "to": ""}
    return None if start in _OFF or to in _OFF or start.startswith("~") else {"from": start, "to": to}


def _text(site: Site, name: str) -> str:
    return site.values.text(name) or site.config.text(name)
