"""A small set of objects in one namespace, edited at random, and the records that a gateway should have for them.

The records are derived from the objects without code of the product and independently of history. All references exist,
so that every object can be translated at any time.
"""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from e2e.cluster.client import KubeClient, Manifest
from e2e.everything import certificate, custom
from e2e.faults.proxies.journal import references

SERVICES = ("s0", "s1", "s2", "s3")
ROUTES = tuple(f"r{number}" for number in range(10))
CONFIGS = ("p0", "p1")
CONSUMERS = ("c0", "c1")
RULES = {"g0": ("request-id", "header_name"), "g1": ("response-rewrite", "body")}
"""Global rules, each with its plugin and option: two with the same plugin would conflict."""

CERTIFICATES = ("t0", "t1")
KINDS = ("routes", "upstreams", "plugin_configs", "consumers", "global_rules", "ssls")
NAMELESS = {"global_rules": tuple(RULES), "ssls": CERTIFICATES}
"""Objects of kinds whose records contain no name: a new object cannot recognize a record under its short id."""

PORT = 8080
NETWORK = "10.250.0"

Facts = dict[str, dict[str, Any]]
"""`routes/1` → fields that the record must have."""


class Gateway(Protocol):
    """The part of a gateway that is compared."""

    def records(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the records of a kind by id."""


@dataclass(slots=True)
class World:
    """The objects. `always` has the records that were desired after every edit since `begin`."""

    api: KubeClient
    namespace: str
    rng: random.Random
    endpoints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    routes: dict[str, dict[str, Any]] = field(default_factory=dict)
    configs: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    certificates: dict[str, str] = field(default_factory=dict)
    always: frozenset[str] = frozenset()

    def found(self) -> None:
        """Create the objects that are never deleted: Services, and a route to each."""
        for name in SERVICES:
            ports = [{"name": "http", "port": 80, "targetPort": PORT}]
            meta = {"name": name, "namespace": self.namespace}
            self.api.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}})
            self._set_endpoints(name, 2)
            self._put_route(f"base-{name}", (name,))

    def begin(self) -> None:
        """Reset the records in `always` to the current ones."""
        self.always = frozenset(self.expected())

    def edit(self) -> None:
        """Change something: endpoints in two of five cases, otherwise any object."""
        edits: list[Callable[[], None]] = [self._some_endpoints] * 4
        edits += [self._some_route, self._some_route, self._drop_route, self._some_config, self._some_consumer]
        edits += [self._some_rule, self._some_certificate]
        self.rng.choice(edits)()
        self.always &= self.expected().keys()

    def expected(self) -> Facts:
        """Return the records that a gateway should have, each with its known fields."""
        found: Facts = {}
        for name, route in self.routes.items():
            services = [self._upstream(found, service) for service in route["services"]]
            config = [f"plugin_configs/{self._id(route['config'])}"] if route["config"] else []
            facts = {"uris": [route["path"]], "hosts": [self.host], "names": sorted({*services, *config})}
            found[f"routes/{self._id(name, 'rule')}"] = {"name": self._name(name, "rule"), **facts}
        for name, number in self.configs.items():
            found[f"plugin_configs/{self._id(name)}"] = {"plugins": {"cors": {"max_age": number}}}
        for name, key in self.consumers.items():
            found[f"consumers/{self._name(name).replace('-', '_')}"] = {"plugins": {"key-auth": {"key": key}}}
        for name, value in self.rules.items():
            plugin, option = RULES[name]
            found[f"global_rules/{self._id(name)}"] = {"plugins": {plugin: {option: value}}}
        for name, pem in self.certificates.items():
            found[f"ssls/{self._id(name)}"] = {"snis": [f"{name}.{self.host}"], "cert": pem}
        return found

    def held(self, gateway: Gateway) -> Facts:
        """Return the records of a gateway; records with wide ids appear under their short ids.

        An object that is created again before the record of the previous one is deleted may get its wide id, if the
        record contains no name (docs/decisions/0013-ids-stay.md). No record may have both ids.
        """
        found = held(gateway)
        for kind, names in NAMELESS.items():
            for name in names:
                wide, short = f"{kind}/{self._wide_id(name)}", self._id(name)
                if wide in found and f"{kind}/{short}" not in found:
                    found[f"{kind}/{short}"] = {**found.pop(wide), "id": short}
        return found

    @property
    def host(self) -> str:
        """The host of all routes."""
        return f"{self.namespace}.example.org"

    # --- edits

    def _some_endpoints(self) -> None:
        self._set_endpoints(self.rng.choice(SERVICES), self.rng.randint(0, 4))

    def _some_route(self) -> None:
        services = tuple(self.rng.sample(SERVICES, self.rng.choice((1, 1, 2))))
        config = self.rng.choice(["", *self.configs])
        self._put_route(self.rng.choice(ROUTES), services, config)

    def _drop_route(self) -> None:
        if names := sorted(self.routes.keys() & set(ROUTES)):
            name = self.rng.choice(names)
            self.api.delete("ApisixRoute", name, namespace=self.namespace)
            del self.routes[name]

    def _some_config(self) -> None:
        name = self.rng.choice(CONFIGS)
        is_free = all(route["config"] != name for route in self.routes.values())
        if not (is_free and self._drop(self.configs, "ApisixPluginConfig", name)):
            self.configs[name] = self.rng.randrange(1, 1000)
            self._apply(custom("ApisixPluginConfig", name, plugins=[_plugin("cors", {"max_age": self.configs[name]})]))

    def _some_rule(self) -> None:
        name = self.rng.choice(sorted(RULES))
        if not self._drop(self.rules, "ApisixGlobalRule", name):
            plugin, option = RULES[name]
            self.rules[name] = f"X-{self.rng.randrange(1000)}"
            self._apply(custom("ApisixGlobalRule", name, plugins=[_plugin(plugin, {option: self.rules[name]})]))

    def _some_consumer(self) -> None:
        name = self.rng.choice(CONSUMERS)
        if not self._drop(self.consumers, "ApisixConsumer", name):
            key = self.consumers[name] = f"a-key-of-{name}-{self.rng.randrange(10**9)}"
            self._apply(custom("ApisixConsumer", name, authParameter={"keyAuth": {"value": {"key": key}}}))

    def _some_certificate(self) -> None:
        name = self.rng.choice(CERTIFICATES)
        if not self._drop(self.certificates, "ApisixTls", name):
            host = f"{name}.{self.host}"
            secret = certificate(name, host)
            self.certificates[name] = secret["stringData"]["tls.crt"]
            pair = {"name": name, "namespace": self.namespace}
            self._apply(secret)
            self._apply(custom("ApisixTls", name, hosts=[host], secret=pair))

    def _drop(self, kept: dict[str, Any], kind: str, name: str) -> bool:
        """Delete an object with some probability if it exists; return whether it was deleted."""
        if name not in kept or self.rng.random() < 0.5:
            return False
        self.api.delete(kind, name, namespace=self.namespace)
        del kept[name]
        return True

    def _put_route(self, name: str, services: tuple[str, ...], config: str = "") -> None:
        path = f"/{name}/{self.rng.randrange(1000)}"
        self.routes[name] = {"path": path, "services": services, "config": config}
        rule: Manifest = {
            "name": "rule",
            "match": {"hosts": [self.host], "paths": [path]},
            "backends": [{"serviceName": service, "servicePort": 80, "weight": 50} for service in services],
        }
        self._apply(custom("ApisixRoute", name, http=[rule | ({"plugin_config_name": config} if config else {})]))

    def _set_endpoints(self, service: str, number: int) -> None:
        addresses = tuple(sorted(f"{NETWORK}.{last}" for last in self.rng.sample(range(1, 250), number)))
        self.endpoints[service] = addresses
        self.api.apply(slice_of(service, {address: {"ready": True} for address in addresses}), namespace=self.namespace)

    def _apply(self, manifest: Manifest) -> None:
        self.api.apply(manifest, namespace=self.namespace)

    def _upstream(self, found: Facts, service: str) -> str:
        record = f"upstreams/{self._id(service, '80')}"
        nodes = [{"host": address, "port": PORT, "weight": 100} for address in self.endpoints[service]]
        found[record] = {"name": self._name(service, "80"), "nodes": nodes}
        return record

    def _name(self, *parts: str) -> str:
        return "_".join((self.namespace, *parts))

    def _id(self, *parts: str) -> str:
        return f"{zlib.crc32(self._name(*parts).encode()):x}"

    def _wide_id(self, *parts: str) -> str:
        return hashlib.sha256(self._name(*parts).encode()).hexdigest()[:16]


def _plugin(name: str, config: Mapping[str, Any]) -> Manifest:
    return {"name": name, "enable": True, "config": dict(config)}


def slice_of(service: str, conditions: Mapping[str, Mapping[str, bool]], *, port: int = PORT) -> Manifest:
    """Return a manual EndpointSlice for a Service without a selector: address → conditions."""
    endpoints = [{"addresses": [address], "conditions": dict(each)} for address, each in conditions.items()]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }


def held(gateway: Gateway) -> Facts:
    """Return the records of a gateway by key, e.g. `routes/1`."""
    return {f"{kind}/{id_}": body for kind in KINDS for id_, body in gateway.records(kind).items()}


def differences(got: Facts, want: Facts) -> list[str]:
    """Return as text how a gateway differs from the desired state; only known parts of a body are compared."""
    found = [f"lacks {record}" for record in want.keys() - got.keys()]
    found += [f"has {record} {got[record].get('name')}" for record in got.keys() - want.keys()]
    for record in want.keys() & got.keys():
        for name, value in want[record].items():
            shown = sorted(set(references(got[record]))) if name == "names" else got[record].get(name)
            if shown != value:
                found.append(f"{record}: {name} is {shown!r}, not {value!r}")
    twice = [body["name"] for body in got.values() if body.get("name")]
    return sorted(found) + sorted({f"{name} is there twice" for name in twice if twice.count(name) > 1})
