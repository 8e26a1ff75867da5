"""HTTPRoutes for a host, at the listeners of a ListenerSet, with the plugins in ApisixPluginConfigs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from apisix_ingress.model.json import JsonObject
from translation.nginx.native.merging import Merged, merged
from translation.nginx.native.model import Effect, HostPlan, Note, Place, Share, Var, Written
from translation.nginx.native.objects.apisix_route import plugin_list
from translation.nginx.native.objects.names import manifest, object_name
from translation.nginx.native.objects.tls import SELF_SIGNED
from translation.nginx.native.objects.upstreams import Upstreams
from translation.nginx.native.paths import Path, joined_paths
from translation.nginx.options import CATCH_ALL

GATEWAY = "apisix"
"""Name and namespace of the Gateway that ListenerSets refer to; it is written together with them."""

_GROUP = "gateway.networking.k8s.io"
_RULES = 16
"""Maximum number of rules of an HTTPRoute (CRD)."""

_WEBSOCKET = (
    "WebSocket: set appProtocol: kubernetes.io/ws on the port of the Service if clients use it; ingress-nginx needs no"
    " setting"
)
_NO_SERVICE = "none of the Services of the host exists, and the object needs one; create it, or use --to apisixroute"
_LEFT_OUT = "; the whole host is skipped, because a less specific path would receive these requests"
_CLIENT = "auth-tls-secret: certificates of clients are a setting of the Gateway (tls.frontend), not of a host"


def write_http_routes(plan: HostPlan, upstreams: Upstreams, ingress_class: str) -> Written:
    """Return the ListenerSet, HTTPRoutes, ApisixPluginConfigs and ReferenceGrants of a host."""
    return _Writer(plan, upstreams, ingress_class).written()


def _whole_host_missing(notes: Iterable[Note]) -> Written | None:
    """Return only notes if a path cannot be written: a less specific path of the host would receive its requests."""
    missing = [replace(each, reason=f"{each.reason}{_LEFT_OUT}") for each in notes if each.effect == "not written"]
    return Written((), tuple(missing)) if missing else None


def gateway() -> JsonObject:
    """Return the Gateway of all ListenerSets."""
    everywhere = {"namespaces": {"from": "All"}}
    listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": everywhere}
    spec = {
        "gatewayClassName": "apisix",
        "listeners": [listener],
        "allowedListeners": everywhere,
    }
    return manifest("Gateway", GATEWAY, GATEWAY, spec)


@dataclass(slots=True)
class _Writer:
    plan: HostPlan
    upstreams: Upstreams
    ingress_class: str
    notes: dict[Note, None] = field(default_factory=dict)
    _configs: dict[str, list[JsonObject]] = field(default_factory=dict)
    _granted: set[tuple[str, str, str]] = field(default_factory=set)

    def written(self) -> Written:
        """Return everything."""
        asking = any(each.client for each in self.plan.certificates)
        secured = [each for each in self.plan.certificates if each.secret]
        routes: list[JsonObject] = []
        for scheme in ("http", "https") if secured else ("http",):
            merge = partial(_closed if asking else merged, scheme=scheme)
            paths = joined_paths(self.plan.places, merge)
            routes += self._routes(scheme, list(paths))
        if missing := _whole_host_missing(self.notes):
            return missing
        if not secured and self.plan.host != CATCH_ALL:
            self.notes[Note(self.plan.host, "", "differs", SELF_SIGNED)] = None
        listeners = [*self._listeners()] if self.plan.host != CATCH_ALL else []
        objects = (*listeners, *routes, *self._plugin_configs(), *self._grants())
        return Written(objects, tuple(self.notes))

    def _listeners(self) -> Iterator[JsonObject]:
        """Yield the ListenerSet."""
        listeners: list[JsonObject] = []
        for number, host in enumerate(dict.fromkeys(host for place in self.plan.places for host in place.hosts)):
            suffix = f"-{number}" if number else ""
            listeners.append({"name": f"http{suffix}", "hostname": host, "port": 80, "protocol": "HTTP"})
            for certificate in self.plan.certificates:
                if certificate.secret:
                    reference = {"name": certificate.secret.name, **self._elsewhere("ListenerSet", certificate.secret)}
                    listeners.append(
                        {
                            "name": f"https{suffix}",
                            "hostname": host,
                            "port": 443,
                            "protocol": "HTTPS",
                            "tls": {"mode": "Terminate", "certificateRefs": [reference]},
                        }
                    )
        parent = {"name": GATEWAY, "namespace": GATEWAY, "kind": "Gateway", "group": _GROUP}
        spec = {"parentRef": parent, "listeners": listeners}
        yield manifest("ListenerSet", self.plan.namespace, object_name(self.plan.host), spec)

    def _elsewhere(self, kind: str, key: Any) -> JsonObject:
        """Return the namespace of a reference to another one, and note that it needs a grant."""
        if key.namespace == self.plan.namespace:
            return {}
        self._granted.add((key.namespace, kind, key.kind))
        return {"namespace": key.namespace}

    def _routes(self, scheme: str, paths: Sequence[Path]) -> Iterator[JsonObject]:
        by_hosts: dict[tuple[str, ...], list[JsonObject]] = {}
        for path in paths:
            by_hosts.setdefault(path.place.hosts, []).extend(self._rules(path))
        number = 0
        for hosts, rules in by_hosts.items():
            for start in range(0, len(rules), _RULES):
                number += 1
                spec: JsonObject = {"parentRefs": self._parents(scheme, hosts), "rules": rules[start : start + _RULES]}
                if hosts:
                    spec["hostnames"] = list(hosts)
                name = f"{object_name(self.plan.host)}-{scheme}-{number:02}"
                yield manifest("HTTPRoute", self.plan.namespace, name, spec)

    def _parents(self, scheme: str, hosts: tuple[str, ...]) -> list[JsonObject]:
        if not hosts:
            return [{"name": GATEWAY, "namespace": GATEWAY}]
        every = list(dict.fromkeys(host for place in self.plan.places for host in place.hosts))
        numbers = [every.index(host) for host in hosts]
        name = object_name(self.plan.host)
        return [
            {"group": _GROUP, "kind": "ListenerSet", "name": name, "sectionName": f"{scheme}{f'-{at}' if at else ''}"}
            for at in numbers
        ]

    def _rules(self, path: Path) -> Iterator[JsonObject]:
        action = path.action
        if not action.closed and action.shares:
            why, different = self.upstreams.add(action.shares, action.timeout)
            action = action.as_closed(why) if why else action
            self._note(path, "differs", *different, _WEBSOCKET)
        if action.closed:
            self._note(path, "closed", action.closed)
        self._note(path, "differs", *action.differs)
        spare = self.plan.any_backend(path.place)
        shares = action.shares or ((spare,) if spare else ())
        if not shares:
            self._note(path, "not written", _NO_SERVICE)
            return
        for when, chosen in (*action.cases, ((), shares)):
            yield self._rule(path, action, when, chosen)

    def _rule(self, path: Path, action: Merged, when: Sequence[Var], shares: Sequence[Share]) -> JsonObject:
        match: JsonObject = {"path": _path(path)}
        if when:
            match["headers"] = [_header(each) for each in when]
        rule: JsonObject = {"matches": [match]}
        if action.plugins:
            reference = {"group": "apisix.apache.org", "kind": "ApisixPluginConfig", "name": self._config(action)}
            rule["filters"] = [{"type": "ExtensionRef", "extensionRef": reference}]
        rule["backendRefs"] = [
            {
                "name": share.claim.target.name,
                "port": share.claim.port,
                "weight": share.weight,
                **self._elsewhere("HTTPRoute", share.claim.target),
            }
            for share in shares
        ]
        return rule

    def _config(self, action: Merged) -> str:
        plugins = plugin_list(action.plugins)
        for name, known in self._configs.items():
            if known == plugins:
                return name
        name = f"{object_name(self.plan.host)}-{len(self._configs) + 1}"
        self._configs[name] = plugins
        return name

    def _plugin_configs(self) -> Iterator[JsonObject]:
        for name, plugins in self._configs.items():
            spec = {"ingressClassName": self.ingress_class, "plugins": plugins}
            yield manifest("ApisixPluginConfig", self.plan.namespace, name, spec)

    def _grants(self) -> Iterator[JsonObject]:
        for namespace, kind, to in sorted(self._granted):
            spec = {
                "from": [{"group": _GROUP, "kind": kind, "namespace": self.plan.namespace}],
                "to": [{"group": "", "kind": to}],
            }
            name = f"{kind.lower()}-from-{self.plan.namespace}"
            yield manifest("ReferenceGrant", namespace, name, spec)

    def _note(self, path: Path, effect: Effect, *reasons: str) -> None:
        for reason in reasons:
            self.notes[Note(self.plan.host, path.place.path, effect, reason)] = None


def _closed(place: Place, *, scheme: str) -> Merged:
    return merged(place, scheme=scheme).as_closed(_CLIENT)


def _path(path: Path) -> JsonObject:
    place = path.place
    if place.kind == "Exact":
        return {"type": "Exact", "value": place.uris[0]}
    if place.kind == "Prefix":
        return {"type": "PathPrefix", "value": path.stem}
    assert place.pattern is not None
    _, operator, text = place.pattern
    # The whole path has to match, while nginx searches: the pattern becomes a look-ahead at the beginning.
    flags = "i" if operator == "~*" else ""
    return {"type": "RegularExpression", "value": f"(?{flags}:(?=[\\s\\S]*?(?:{text}))[\\s\\S]*)"}


def _header(condition: Var) -> JsonObject:
    variable, operator, value = condition
    name = str(variable).removeprefix("http_").replace("_", "-")
    if operator == "==":
        return {"type": "Exact", "name": name, "value": value}
    return {"type": "RegularExpression", "name": name, "value": f"(?=[\\s\\S]*?(?:{value}))[\\s\\S]*"}
