"""ApisixRoutes for a host: the routes of the provider as rules, in the same order, without repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from translation.nginx.native.conditions import addresses, alternatives, expressions
from translation.nginx.native.model import STEPS, HostPlan, Note, Place, Share, Step, Var, Written
from translation.nginx.native.objects.names import manifest, object_name
from translation.nginx.native.objects.tls import apisix_tls
from translation.nginx.native.objects.upstreams import Upstreams, timeout
from translation.nginx.native.plugins import CLOSED, plain_plugins
from translation.nginx.native.simplify import numbered, renumbered, shared_plugins, simplified

_NO_CANARY = (
    "the canary in namespace {} gets no requests: an ApisixRoute refers to Services of its own namespace; move the"
    " canary's Service there, or use --to httproute"
)


def write_apisix_routes(plan: HostPlan, upstreams: Upstreams, ingress_class: str) -> Written:
    """Return the ApisixRoutes, ApisixPluginConfigs and ApisixTls of a host."""
    writer = _Writer(plan, upstreams, ingress_class)
    for place in plan.places:
        writer.add(place)
    certificates = apisix_tls(plan, ingress_class)
    return Written((*writer.objects(), *certificates.objects), (*writer.notes, *certificates.notes))


@dataclass(slots=True)
class _Writer:
    plan: HostPlan
    upstreams: Upstreams
    ingress_class: str
    notes: dict[Note, None] = field(default_factory=dict)
    _rules: dict[str, list[JsonObject]] = field(default_factory=dict)
    _limits: dict[ObjectKey, Mapping[str, JsonObject]] = field(default_factory=dict)

    def add(self, place: Place) -> None:
        """Add the rules of a location."""
        allowed: tuple[str, ...] = ()
        below = place.steps[-1].priority // STEPS * STEPS
        for step in place.steps:
            listed, excluded = addresses(step.when)
            if excluded:
                # A rule cannot match all addresses except some: these are matched by the rules below, and the others
                # last.
                allowed = listed
                rest = (each for each in step.when if each[0] != "remote_addr")
                below -= 1
                self._step(place, replace(step, when=tuple(rest), priority=below), ())
            else:
                self._step(place, step, listed or allowed)

    def objects(self) -> Iterator[JsonObject]:
        """Yield the objects."""
        name = object_name(self.plan.host)
        spaces = {namespace: simplified(rules) for namespace, rules in sorted(self._rules.items())}
        ranked = iter(renumbered([rule for rules in spaces.values() for rule in rules]))
        for namespace, rules in spaces.items():
            own, configs = shared_plugins([next(ranked) for _ in rules], f"{name}-common")
            spec: JsonObject = {"ingressClassName": self.ingress_class, "http": list(numbered(own, _kind))}
            yield manifest("ApisixRoute", namespace, name, spec)
            for title, common in configs:
                spec = {"ingressClassName": self.ingress_class, "plugins": common}
                yield manifest("ApisixPluginConfig", namespace, title, spec)
        for key, plugins in sorted(self._limits.items()):
            spec = {"ingressClassName": self.ingress_class, "plugins": plugin_list(plugins)}
            yield manifest("ApisixPluginConfig", key.namespace, key.name, spec)

    def _step(self, place: Place, step: Step, clients: tuple[str, ...]) -> None:
        plain = plain_plugins(step.plugins)
        if step.main and (elsewhere := _outside(step, place)):
            own = tuple(share for share in step.shares if share.claim.target.namespace == place.namespace)
            step = replace(step, shares=own or (step.main,))
            self.notes[Note(self.plan.host, place.path, "differs", _NO_CANARY.format(elsewhere))] = None
        why, different = self.upstreams.add(step.shares, step.timeout) if not plain.closed else (plain.closed, ())
        if why:
            self.notes[Note(self.plan.host, place.path, "closed", why)] = None
            step = replace(step, plugins=CLOSED, shares=(), timeout={}, limits={})
        else:
            step = replace(step, plugins=plain.plugins)
        for each in (*plain.differs, *different):
            self.notes[Note(self.plan.host, place.path, "differs", each)] = None
        namespace = place.namespace
        rules = self._rules.setdefault(namespace, [])
        for when in alternatives(step.when):
            rules.append(self._rule(place, step, when, clients))

    def _rule(self, place: Place, step: Step, when: tuple[Var, ...], clients: tuple[str, ...]) -> JsonObject:
        match: JsonObject = {"paths": list(place.uris)}
        if place.hosts:
            match["hosts"] = list(place.hosts)
        if clients:
            match["remoteAddrs"] = list(clients)
        if exprs := expressions([*([place.pattern] if place.pattern else ()), *when]):
            match["exprs"] = exprs
        rule: JsonObject = {"priority": step.priority, "match": match}
        if step.shares:
            rule |= {"websocket": True, "backends": [_backend(share) for share in step.shares]}
            rule["timeout"] = timeout(step.timeout)
        if step.plugins:
            rule["plugins"] = plugin_list(step.plugins)
        if step.limits and place.ingress:
            key = ObjectKey("ApisixPluginConfig", place.namespace, f"{place.ingress.name}-limits")
            self._limits[key] = step.limits
            rule["plugin_config_name"] = key.name
        return rule


def _outside(step: Step, place: Place) -> str:
    """Return the namespace of a canary that is not the one of its location; empty if all are."""
    spaces = (share.claim.target.namespace for share in step.shares)
    return next((space for space in spaces if space != place.namespace), "")


def plugin_list(plugins: Mapping[str, JsonObject]) -> list[JsonObject]:
    """Return plugins as a manifest has them."""
    return [{"name": name, "config": dict(config)} for name, config in plugins.items()]


def _backend(share: Share) -> JsonObject:
    found: JsonObject = {"serviceName": share.claim.target.name, "servicePort": share.claim.port}
    if share.claim.granularity == "service":
        found["resolveGranularity"] = "service"
    return found | {"weight": share.weight}


def _kind(rule: JsonObject) -> str:
    """Return a word for the name of a rule."""
    if "backends" in rule:
        return "serve"
    plugins = {plugin["name"]: plugin["config"] for plugin in rule["plugins"]}
    if "redirect" in plugins:
        return "redirect"
    return f"answer-{plugins['fault-injection']['abort']['http_status']}"
