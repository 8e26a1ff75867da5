"""Warnings about an Ingress of ingress-nginx: what the controller does with it. It is never denied.

While ingress-nginx runs, its own webhook denies what it does not accept.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.ingress_spec import IngressSpec, parse_ingress
from translation.nginx.classes import is_served
from translation.nginx.ingress import judge_ingress
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import host_of, values_of
from translation.nginx.sources import sources_of_host

_LITERAL = ValuePattern(r"/[A-Za-z0-9._/-]*")
"""The Exact and Prefix paths that ingress-nginx accepts (strict-validate-path-type)."""


def nginx_warnings(item: CustomObject, view: View, options: Options, *, shows_others: bool) -> Iterator[str]:
    """Yield the warnings about an Ingress; nothing for one that is not served for ingress-nginx.

    Args:
        item: The Ingress.
        view: The objects, with this one among them.
        options: The settings.
        shows_others: Whether the client may learn about other objects.
    """
    nginx = options.nginx
    if nginx is None or item.meta.kind != "Ingress" or not is_served(item, view, options, nginx):
        return
    judged_item = judge_ingress(item, view, options, nginx, shows_others=shows_others)
    yield from map(str, judged_item.problems)
    spec = parse_ingress(Builder(item.meta, view, options), item.spec)
    if spec is None:
        return
    if nginx.disable_catch_all and spec.default_backend and not spec.rules:
        yield "spec.defaultBackend: ingress_nginx.disable_catch_all is set: the Ingress is not served; add rules"
    yield from _odd_paths(spec)
    if shows_others:
        yield from _taken(item, spec, view, options, nginx)


def _odd_paths(spec: IngressSpec) -> Iterator[str]:
    for number, rule in enumerate(spec.rules):
        for place, path in enumerate(rule.http.paths if rule.http else ()):
            if path.path_type != "ImplementationSpecific" and path.path and not _LITERAL.fits(path.path):
                yield (
                    f"spec.rules[{number}].http.paths[{place}].path: {path.path!r} has characters that ingress-nginx"
                    f" rejects for type {path.path_type}; use ImplementationSpecific"
                )


def _taken(item: CustomObject, spec: IngressSpec, view: View, options: Options, nginx: NginxOptions) -> Iterator[str]:
    """Yield the paths that an older Ingress has."""
    if values_of(item.meta.annotations, nginx.prefix).flag("canary"):
        return
    for host in dict.fromkeys(host_of(rule.host) for rule in spec.rules):
        winners: dict[tuple[str, bool], str] = {}
        for source in sources_of_host(view, options, nginx, host):
            for path in () if source.canary else source.paths(host):
                key = (path.path or "/", path.path_type == "Exact")
                winner = winners.setdefault(key, str(source.meta.key))
                if source.meta.key == item.meta.key and winner != str(item.meta.key):
                    yield f"spec.rules: {host}{key[0]} is served by {winner}, which is older; remove one of them"
