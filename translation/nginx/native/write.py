"""Every host of ingress-nginx as native manifests, one list of objects for each host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import nginx_hosts
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.options import ANY_CLASS, Options
from translation.core.scope import INGRESS_CLASS_OF_ANY
from translation.nginx.native.model import HostPlan, Note, Target, Written
from translation.nginx.native.objects.apisix_route import write_apisix_routes
from translation.nginx.native.objects.http_route import gateway, write_http_routes
from translation.nginx.native.objects.upstreams import Upstreams
from translation.nginx.native.plan import plan_host
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.parsing import host_of
from translation.nginx.sources import source_of

TARGETS: Mapping[str, Target] = {"apisixroute": "apisixroute", "httproute": "httproute"}
_WRITERS: Mapping[Target, Callable[[HostPlan, Upstreams, str], Written]] = {
    "apisixroute": write_apisix_routes,
    "httproute": write_http_routes,
}


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests.

    Attributes:
        hosts: Host → its objects.
        shared: Objects that hosts share: settings of Services.
        notes: What is not expressed, sorted.
    """

    hosts: dict[str, tuple[JsonObject, ...]]
    shared: tuple[JsonObject, ...]
    notes: tuple[Note, ...]


def native_manifests(
    items: Iterable[CustomObject],
    view: View,
    options: Options,
    nginx: NginxOptions,
    target: Target,
    *,
    refused: Mapping[ObjectKey, str] = MappingProxyType({}),
) -> Manifests:
    """Return the manifests of every host that Ingresses of ingress-nginx among these objects name.

    Args:
        items: The Ingresses.
        view: The objects that they refer to.
        options: The settings.
        nginx: Those of ingress-nginx.
        target: The kind of the manifests.
        refused: Ingress → why it, or some of its paths, are not served.
    """
    items = tuple(items)
    plans = list(_plans(items, view, options, nginx))
    secrets = {id_: secret for plan in plans for id_, secret in plan.secrets.items()}
    upstreams = Upstreams(secrets, timed=target != "apisixroute")
    own = INGRESS_CLASS_OF_ANY if options.ingress_class == ANY_CLASS else options.ingress_class
    hosts: dict[str, tuple[JsonObject, ...]] = {}
    notes: set[Note] = set()
    known: set[tuple[str, str, str]] = set()
    for plan in plans:
        written = _WRITERS[target](plan, upstreams, own)
        hosts[plan.host] = tuple(_new(written.objects, known))
        closed = {(note.host, note.path) for note in written.notes if note.effect == "closed"}
        notes |= {*written.notes, *(each for each in _closed(plan, refused) if (each.host, each.path) not in closed)}
    notes |= {each for each in _not_written(items, refused) if each.host not in hosts}
    shared = [gateway()] if target == "httproute" else []
    return Manifests(hosts, (*shared, *upstreams.objects(own)), tuple(sorted(notes)))


def _closed(plan: HostPlan, refused: Mapping[ObjectKey, str]) -> Iterator[Note]:
    """Yield the paths to which the provider responds with 503."""
    for place in plan.places:
        last = place.steps[-1]
        abort = last.plugins.get("fault-injection", {}).get("abort", {})
        if not last.shares and abort.get("http_status") == CLOSED_STATUS:
            why = refused.get(place.ingress) if place.ingress else None
            yield Note(plan.host, place.path, "closed", why or _UNKNOWN)


def _not_written(items: Iterable[CustomObject], refused: Mapping[ObjectKey, str]) -> Iterator[Note]:
    """Yield the hosts of Ingresses that are not served at all."""
    for item in items:
        for host in nginx_hosts(item) if item.meta.key in refused else ():
            yield Note(host, "", "not written", f"{item.meta.key}: {refused[item.meta.key]}")


CLOSED_STATUS = 503
_UNKNOWN = "the path is not served: the report of `migrate` has the reason"


def _new(objects: Iterable[JsonObject], known: set[tuple[str, str, str]]) -> Iterator[JsonObject]:
    """Yield the objects that no other host has: those of an Ingress with several hosts are shared."""
    for item in objects:
        key = (item["kind"], item["metadata"]["namespace"], item["metadata"]["name"])
        if key not in known:
            known.add(key)
            yield item


def _plans(items: Iterable[CustomObject], view: View, options: Options, nginx: NginxOptions) -> Iterator[HostPlan]:
    sources = (source for item in items if (source := source_of(item, view, options, nginx)))
    hosts = {host_of(rule.host) for source in sources for rule in source.spec.rules}
    for host in sorted({*hosts, CATCH_ALL}):
        plan = plan_host(host, view, options, nginx)
        if plan and plan.places:
            yield plan
