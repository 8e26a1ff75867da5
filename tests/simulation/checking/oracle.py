"""The expected content of gateways, derived from the API server's objects independently of the product.

It shares no code with the product, and knows the few shapes of objects that `users` create. An object that cannot be
translated, or whose record a gateway rejects, keeps its last valid version: its records are *free*. So are records that
only they refer to.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.kube.apiserver import Manifest
from tests.simulation.servers.apiserver import SERVED, SimApiServer
from tests.simulation.servers.gateway import KINDS, MANAGED, Body, Key, SimGateway
from tests.simulation.users import APISIX, EVIL, FORGED_CONFIG, FORGED_RULE, FORGED_SERVICE, SERVICES

NAMELESS = frozenset({"ssls", "global_rules"})
"""Kinds whose records contain no name: a new name cannot recognize its record under its short id."""

FORGED = frozenset({f"{EVIL}_{FORGED_SERVICE}_80", f"{EVIL}_{FORGED_CONFIG}", f"{EVIL}_a_{FORGED_RULE}"})

Need = tuple[str, Key]
"""UID of an object and a record that it needs."""


@dataclass(slots=True)
class Expectation:
    """Records with the relevant fields, and records without expectations.

    Attributes:
        records: Key → fields that the body must have.
        free: Keys that may be there or not, in any version.
        kept: Free keys that belong to an object, with their names: existing records must stay.
        closed: Free keys that must be there, in any version: a gateway rejects the record, or one that it refers to.
        conditions: ApisixRoutes and others → status of their condition.
        needs: Each object with a record of `records` or `kept` that it needs.
    """

    records: dict[Key, Body] = field(default_factory=dict)
    free: set[Key] = field(default_factory=set)
    kept: dict[Key, str] = field(default_factory=dict)
    closed: set[Key] = field(default_factory=set)
    conditions: dict[tuple[str, str, str], str] = field(default_factory=dict)
    needs: set[Need] = field(default_factory=set)

    def add(self, item: Manifest, key: Key, fields: Body) -> None:
        """Expect a record that an object needs."""
        self.records[key] = fields
        self.needs.add((item["metadata"]["uid"], key))

    def keep(self, item: Manifest, key: Key, name: str) -> None:
        """Expect that the record of an object stays if it exists, in any version."""
        self.free.add(key)
        self.kept[key] = name
        self.needs.add((item["metadata"]["uid"], key))


class Oracle:
    """Reads the current API server, and from gateways which of its two ids a name has if records contain no names.

    Attributes:
        narrow: Wide ids of names that records do not contain → the short ones.
    """

    def __init__(self, server: SimApiServer, gateways: Sequence[SimGateway], *, selective: bool) -> None:
        self.narrow: dict[Key, Key] = {}
        self._server = server
        self._gateways = gateways
        self._selective = selective

    def expect(self) -> Expectation:
        """Return the expected final content of every gateway."""
        want = Expectation()
        for item in self._objects("ApisixPluginConfig"):
            self._simple(want, item, "plugin_configs", {"plugins": _plugins(item)})
        for item in self._objects("ApisixGlobalRule"):
            self._simple(want, item, "global_rules", {"plugins": _plugins(item)})
        for item in self._objects("ApisixConsumer"):
            key, name = item["spec"]["authParameter"]["keyAuth"]["value"]["key"], "_".join(_name(item))
            want.add(item, ("consumers", name), {"plugins": {"key-auth": {"key": key}}})
            self._say(want, item, "True")
        for item in self._objects("ApisixTls"):
            self._tls(want, item)
        for item in self._objects("ApisixRoute"):
            self._route(want, item)
        for item in self._objects("Ingress"):
            self._ingress(want, item)
        want.free -= want.records.keys()
        return want

    def differences(
        self, want: Expectation, records: Mapping[str, Mapping[str, Body]], *, forgiven: set[Key]
    ) -> list[str]:
        """Return descriptions of the differences of a gateway from the expectation.

        Args:
            want: The expectation.
            records: Kind → id → body.
            forgiven: Records that may exist without being desired.
        """
        owned = {(kind, id_) for kind in KINDS for id_, body in records[kind].items() if is_ours(kind, body)}
        found = [f"lacks {key}" for key in (*want.records, *sorted(want.closed)) if key[1] not in records[key[0]]]
        found += [f"has {key}" for key in sorted(owned - want.records.keys() - want.free - forgiven)]
        for (kind, id_), fields in want.records.items():
            body = records[kind].get(id_, {})
            found += [
                f"{kind}/{id_}: {name} is {body.get(name)!r}, not {value!r}"
                for name, value in fields.items()
                if body and body.get(name) != value
            ]
        return found

    # Kinds.

    def _simple(self, want: Expectation, item: Manifest, kind: str, fields: Body) -> None:
        key = self._key(kind, "_".join(_name(item)))
        if _is_refused(fields["plugins"]):
            want.keep(item, key, "_".join(_name(item)))
        else:
            want.add(item, key, fields)
        self._say(want, item, "False" if _is_refused(fields["plugins"]) else "True")

    def _tls(self, want: Expectation, item: Manifest) -> None:
        key, secret = self._key("ssls", "_".join(_name(item))), self._server.get("secrets", "cert", _name(item)[0])
        if secret is None:
            want.keep(item, key, "")
        else:
            certificate = base64.b64decode(secret["data"]["tls.crt"]).decode()
            want.add(item, key, {"snis": item["spec"]["hosts"], "cert": certificate})
        self._say(want, item, "False" if secret is None else "True")

    def _route(self, want: Expectation, item: Manifest) -> None:
        namespace, rules = _name(item)[0], item["spec"]["http"]
        name = "_".join((*_name(item), rules[0]["name"] if isinstance(rules, list) else "rule"))
        key = ("routes", ident(name))
        if not isinstance(rules, list):
            self._release(want, key, name, item)
            return
        rule = rules[0]
        services = [backend["serviceName"] for backend in rule["backends"]]
        has_config = "plugin_config_name" in rule
        config = ("plugin_configs", ident(f"{namespace}_{rule.get('plugin_config_name')}"))
        is_translated = all(self._server.get("services", service, namespace) for service in services)
        is_translated = is_translated and (not has_config or config in want.records or config in want.kept)
        is_good = not _is_refused(_plugins({"spec": rule})) and (not has_config or config in want.records)
        if not (is_translated and is_good):
            self._release(want, key, name, item)
            want.closed |= {key} if is_translated else set()
            return
        fields = {
            "uris": rule["match"]["paths"],
            "hosts": rule["match"]["hosts"],
            "upstream_id": ident(f"{namespace}_{services[0]}_80"),
            "plugin_config_id": config[1] if has_config else None,
        }
        want.add(item, key, fields)
        for service in services:
            self._upstream(want, item, service)
        self._say(want, item, "True")

    def _ingress(self, want: Expectation, item: Manifest) -> None:
        namespace = _name(item)[0]
        rule = item["spec"]["rules"][0]
        path = rule["http"]["paths"][0]
        service = path["backend"]["service"]["name"]
        name = "_".join(("ing", *_name(item), crc(rule["host"] + path["path"])))
        key = ("routes", crc(name))
        if self._server.get("services", service, namespace) is None:
            self._release(want, key, name, item)
            return
        fields = {"uris": [path["path"]], "host": rule["host"], "upstream_id": crc(f"{namespace}_{service}_80")}
        want.add(item, key, fields)
        self._upstream(want, item, service)

    def _upstream(self, want: Expectation, item: Manifest, service: str) -> None:
        namespace = _name(item)[0]
        found = self._server.get("endpointslices", f"{service}-1", namespace) or {"endpoints": []}
        addresses = sorted(address for endpoint in found["endpoints"] for address in endpoint["addresses"])
        settings = (self._server.get("apisixupstreams", service, namespace) or {}).get("spec", {})
        nodes = [{"host": address, "port": 8080, "weight": 100} for address in addresses]
        key = ("upstreams", ident(f"{namespace}_{service}_80"))
        want.add(item, key, {"nodes": nodes, "retries": settings.get("retries")})

    def _key(self, kind: str, name: str) -> Key:
        """Return the key for a name; the one with the wide id if gateways have only that, and records contain no names.

        `Checks` verifies that no such name gets a wide id unnecessarily.
        """
        key = (kind, ident(name))
        if kind in NAMELESS:
            wide = (kind, wide_ident(name))
            self.narrow[wide] = key
            if self.is_held(wide) and not self.is_held(key):
                return wide
        return key

    def is_held(self, key: Key) -> bool:
        """Return whether a gateway has a record."""
        return any(key[1] in gateway.records[key[0]] for gateway in self._gateways)

    def has_had(self, name: str, addresses: tuple[str, ...]) -> bool:
        """Return whether these were ever the endpoints of the Service of an upstream."""
        return (name, addresses) in self._server.endpoints

    def _release(self, want: Expectation, key: Key, name: str, item: Manifest) -> None:
        """Free an object's route and its possible references: any Service and plugin config in its namespace."""
        namespace = _name(item)[0]
        want.keep(item, key, name)
        services, configs = (*SERVICES, FORGED_SERVICE), ("p", FORGED_CONFIG)
        want.free |= {("upstreams", ident(f"{namespace}_{service}_80")) for service in services}
        want.free |= {("plugin_configs", ident(f"{namespace}_{config}")) for config in configs}
        if item.get("kind") == "Ingress":
            prefix = f"ing_{namespace}_{_name(item)[1]}_"
            host = item["spec"]["rules"][0]["host"]
            want.free |= {("routes", crc(prefix + crc(f"{host}/{number}"))) for number in range(4)}
        self._say(want, item, "False")

    def _say(self, want: Expectation, item: Manifest, status: str) -> None:
        if item["kind"] != "Ingress":
            want.conditions[item["kind"], *_name(item)] = status

    def _objects(self, kind: str) -> list[Manifest]:
        """Return the objects of a kind that the controller serves."""
        return [item for item in self._server.all(SERVED[kind].plural) if self._is_watched(item)]

    def _is_watched(self, item: Manifest) -> bool:
        namespace = self._server.get("namespaces", _name(item)[0], "") or {"metadata": {}}
        labels = namespace["metadata"].get("labels", {})
        is_selected = not self._selective or labels.get("watched") == "yes"
        spec = item["spec"] if isinstance(item["spec"], dict) else {}
        is_of_class: bool = spec.get("ingressClassName", APISIX) == APISIX
        return is_selected and is_of_class


def crc(name: str) -> str:
    """Return the id for a name, unless another name has it."""
    return f"{zlib.crc32(name.encode()):x}"


def ident(name: str) -> str:
    """Return the id for a name; forged names come after the names that they imitate."""
    return wide_ident(name) if name in FORGED else crc(name)


def wide_ident(name: str) -> str:
    """Return the id for a name if another one has, or may have, its short id."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def is_ours(kind: str, body: Body) -> bool:
    """Return whether a record belongs to the controller: by its label or, for kinds without labels, by its plugins."""
    if kind in ("global_rules", "plugin_metadata"):
        return "theirs" not in str(body.get("id"))
    labels: dict[str, str] = body.get("labels") or {}
    return MANAGED.items() <= labels.items()


def _name(item: Manifest) -> tuple[str, str]:
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _plugins(item: Manifest) -> dict[str, Any]:
    return {plugin["name"]: plugin["config"] for plugin in item["spec"].get("plugins", [])}


def _is_refused(plugins: dict[str, Any]) -> bool:
    return 0 in [config.get("count") for config in plugins.values()]
