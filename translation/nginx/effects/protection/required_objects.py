"""Objects without which paths are closed: Secrets, ConfigMaps and addresses that annotations name.

The reasons come from the functions that translate a location, so that a report describes the effect on requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import ConfigMap
from translation.core.builder import Builder
from translation.nginx.certificates import client_check
from translation.nginx.effects.balancing.backends import client_certificate
from translation.nginx.effects.balancing.mirror import is_refused
from translation.nginx.effects.branches import Site
from translation.nginx.effects.protection.authentication import authentication
from translation.nginx.effects.protection.proxy_ssl import host_wide, inheriting, is_unverifiable, may_inherit
from translation.nginx.effects.responses import response_headers
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.servers import ROOT, Location, Server
from translation.nginx.sources import Source, each_of_host, read_config
from translation.nginx.tables.config_map import Config


@dataclass(frozen=True, slots=True)
class Closing:
    """Why requests are refused.

    Attributes:
        annotation: The annotation whose object cannot be used.
        why: What is wrong, what to do, and what clients get.
        as_nginx: Whether ingress-nginx also refuses them.
    """

    annotation: str
    why: str
    as_nginx: bool = True


def closings(source: Source, builder: Builder, nginx: NginxOptions) -> Iterator[Closing]:
    """Yield the annotations of an Ingress whose object cannot be used, unless its paths are closed anyway.

    Args:
        source: The Ingress.
        builder: What reads objects; it gets no record and no problem.
        nginx: The settings.
    """
    if source.closed or source.shut:
        return
    scratch = Builder(source.meta, builder.view, builder.options)
    config = read_config(builder.view, nginx)
    wide = _host_wide(source, scratch, config, nginx)
    location = inheriting(Location(ROOT, "Prefix", source), wide)
    host = CATCH_ALL if CATCH_ALL in source.by_host else next(iter(source.by_host), CATCH_ALL)
    server = Server(host, (source,), (location,), False, (source,))
    site = Site(scratch, nginx, config, server, location, secure=False)
    check = client_check(scratch, config, server)
    if check and check.closed:
        yield Closing("auth-tls-secret", f"{check.closed}. Until then, its hosts respond with 403", not check.stricter)
    elif check and check.mode == "on" and CATCH_ALL in source.by_host:
        yield Closing("auth-tls-secret", _NO_HOST, as_nginx=False)
    guard = authentication(site)
    headers = "" if response_headers(site) is not None else _HEADERS
    for reason in (guard.closed, missing_object(site), headers, guard.shut):
        if reason:
            annotation, _, why = reason.partition(": ")
            whose = _INHERITED.format(wide.meta.key) if wide and annotation == "proxy-ssl-secret" else ""
            yield Closing(annotation, f"{whose}{why}. Until then, its paths respond with 503", reason != guard.shut)
    if is_refused(site):
        yield Closing("mirror-target", _NO_COPIES, as_nginx=False)
    if is_unverifiable(site):
        whose = _INHERITED.format(wide.meta.key) if wide else ""
        yield Closing("proxy-ssl-verify", f"{whose}{_UNVERIFIABLE}", as_nginx=False)


def _host_wide(source: Source, builder: Builder, config: Config, nginx: NginxOptions) -> Source | None:
    """Return the Ingress whose settings for TLS to backends apply to this one, because they share a host."""
    for host in source.by_host if may_inherit(source) else ():
        others = islice(each_of_host(builder.view, builder.options, nginx, host), _OTHERS)
        wide = host_wide(builder, config, others)
        if wide is not None and wide.meta.namespace == source.meta.namespace:
            return wide
    return None


_OTHERS = 64
"""Ingresses of a host that are examined: thousands may name it, and each of them has a report."""

_INHERITED = "inherited from {} on the same host: "


_NO_HOST = (
    "gateways cannot ask for certificates of clients in rules without a host: requests by https respond with 400; list"
    " the hosts"
)
_UNVERIFIABLE = (
    "the backend cannot be verified, since the Secret of proxy-ssl-secret has no ca.crt, the protocol is GRPCS, or"
    " error pages or retries by status are in use. Its paths respond with 503"
)
_NO_COPIES = "nothing is mirrored: the settings do not permit requests to this address; ask the operator to add it"
_HEADERS = (
    "custom-headers: its ConfigMap does not exist, or has a header that the key global-allowed-response-headers in the"
    " ConfigMap of the controller does not list; correct one of them"
)


def missing_object(site: Site) -> str:
    """Return why a path responds with 503, after the annotation and a colon; empty if its objects can be used."""
    secret, parameters = site.values.text("proxy-ssl-secret"), site.values.text("fastcgi-params-configmap")
    if secret and not client_certificate(site):
        return f"proxy-ssl-secret: Secret {secret} does not exist, is in another namespace, or has no pair"
    namespace, _, name = parameters.rpartition("/")
    key = ObjectKey("ConfigMap", namespace or site.namespace, name)
    missing = bool(parameters) and site.builder.view.get(ConfigMap, key) is None
    return f"fastcgi-params-configmap: {key} does not exist; create it" if missing else ""
