"""ApisixUpstreams: the settings of Services that paths need. One Service port has one setting, whatever its paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.claims import UpstreamClaim
from translation.nginx.effects.balancing.backends import FIRST
from translation.nginx.native.model import Share

_STICKY = "affinity: a client may change its backend once, after its first request; the provider avoids that"

_Port = tuple[ObjectKey, int]
_DEFAULT_TIMEOUT = 60.0


@dataclass(slots=True)
class Upstreams:
    """Settings by Service and port; the first path that needs a port decides about them.

    Args:
        secrets: Id of an ssl record with a client certificate → its Secret.
        timed: Whether upstreams have the timeouts, since routes of the target have none.
    """

    secrets: Mapping[str, ObjectKey]
    timed: bool = False
    _fields: dict[_Port, JsonObject] = field(default_factory=dict)
    _spans: dict[_Port, Mapping[str, float]] = field(default_factory=dict)

    def add(self, shares: Sequence[Share], spans: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
        """Add what backends need; return why they cannot be served, or empty, and what is different."""
        different: list[str] = []
        for share in shares:
            why = self._add(share.claim, different)
            if why:
                return why, ()
            if self.timed:
                self._time((share.claim.target, share.claim.port), spans, different)
        return "", tuple(dict.fromkeys(different))

    def _add(self, claim: UpstreamClaim, different: list[str]) -> str:
        given: JsonObject = orjson.loads(claim.variant.fields) if claim.variant and claim.variant.fields else {}
        if fallback := given.pop("fallback", None) or given.pop("canary_of", None):
            instead = "/".join(fallback[:2])
            different.append(f"without endpoints {claim.target} returns 503; ingress-nginx uses Service {instead}")
        if given.get("key") == FIRST["key"]:
            different.append(_STICKY)
            return ""
        known = self._fields.setdefault((claim.target, claim.port), given)
        name = f"{claim.target}, port {claim.port}"
        if any(known.get(each) != given.get(each) for each in ("scheme", "tls")):
            return f"{name} has paths with different protocols or client certificates; use a second Service for them"
        others = sorted(each for each in {*known, *given} if known.get(each) != given.get(each))
        if {"type", "hash_on", "key"} & set(others):
            different.append(f"{name}: requests are spread as for the first path with this Service")
        if "retries" in others:
            different.append(f"{name}: retries are {known['retries']}, as for the first path with this Service")
        return ""

    def _time(self, port: _Port, spans: Mapping[str, float], different: list[str]) -> None:
        known = self._spans.setdefault(port, spans)
        if known != spans:
            different.append(f"{port[0]}, port {port[1]}: timeouts are those of the first path with this Service")

    def objects(self, ingress_class: str) -> Iterator[JsonObject]:
        """Yield an ApisixUpstream for each Service with settings that are not the default."""
        services: dict[ObjectKey, list[JsonObject]] = {}
        for (service, port), fields in sorted(self._fields.items()):
            services.setdefault(service, []).append({"port": port, **self._settings((service, port), fields)})
        for service, levels in services.items():
            meta = {"name": service.name, "namespace": service.namespace}
            spec = {"ingressClassName": ingress_class, "portLevelSettings": levels}
            yield {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixUpstream", "metadata": meta, "spec": spec}

    def _settings(self, port: _Port, fields: JsonObject) -> JsonObject:
        found: JsonObject = {"scheme": fields.get("scheme", "http")}
        if "retries" in fields:
            found["retries"] = fields["retries"]
        balancer = {"hash_on": "hashOn"}
        names = ("type", "hash_on", "key")
        spread = {balancer.get(name, name): fields[name] for name in names if name in fields}
        if spread.get("type", "roundrobin") != "roundrobin":
            found["loadbalancer"] = spread
        if "tls" in fields:
            secret = self.secrets[fields["tls"]["client_cert_id"]]
            found["tlsSecret"] = {"name": secret.name, "namespace": secret.namespace}
        if self.timed and port in self._spans:
            found["timeout"] = timeout(self._spans[port])
        return found


def timeout(spans: Mapping[str, float]) -> JsonObject:
    """Return the timeouts of a manifest."""
    return {name: f"{seconds:g}s" for name, seconds in spans.items()}
