"""Fixtures for tests of the webhook: translated objects, reviews, schemas, certificates."""

import random
from collections.abc import Mapping
from functools import cache
from typing import Any

from trustme import CA, LeafCert

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import KubeObject, Secret
from apisix_ingress.state.world import World
from apisix_ingress.webhook.checks.all_checks import Checks
from apisix_ingress.webhook.review import Review, Verdict
from apisix_ingress.webhook.schemas.book import SchemaBook, Subsystem, compile_subsystem
from apisix_ingress.webhook.schemas.plugin_configs import Books
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from tests.factories import make_secret
from tests.fakes.clock import FakeClock
from translation.core.options import Options

GROUPS = {"Ingress": "networking.k8s.io"}
CREATED = "2026-01-01T00:00:00Z"

LIMIT_COUNT: JsonObject = {
    "schema": {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "exclusiveMinimum": 0},
            "rejected_code": {"type": "integer", "minimum": 200, "maximum": 599},
            "policy": {"type": "string", "enum": ["local", "redis"], "default": "local"},
            "redis_password": {"type": "string", "minLength": 1},
        },
        "required": ["count"],
        # As the gateway writes it: without the default of `policy`, the condition would hold.
        "if": {"properties": {"policy": {"enum": ["redis"]}}},
        "then": {"required": ["redis_password"]},
    }
}
KEY_AUTH: JsonObject = {
    "schema": {"type": "object", "properties": {"header": {"type": "string"}}},
    "consumer_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
}
HTTP_PLUGINS: JsonObject = {
    "limit-count": LIMIT_COUNT,
    "key-auth": KEY_AUTH,
    "prometheus": {"schema": {"type": "object"}},
    "proxy-rewrite": {"schema": {"type": "object", "properties": {"uri": {"type": "string", "maxLength": 20}}}},
    "redirect": {"schema": {"type": "object"}},
}
STREAM_PLUGINS: JsonObject = {"mqtt-proxy": {"schema": {"type": "object", "required": ["protocol_level"]}}}


@cache
def book(stream: bool = True) -> SchemaBook:
    """Return what a gateway publishes."""
    return SchemaBook(compile_subsystem(HTTP_PLUGINS), compile_subsystem(STREAM_PLUGINS) if stream else Subsystem())


def make_world(*objects: KubeObject, options: Options | None = None) -> World:
    """Return a world in which these objects are stored and translated."""
    chosen = options or Options()
    world = World(resources(chosen))
    registry = Registry(world, chosen, ChangeSink(), clock=FakeClock(), rng=random.Random(0))
    for item in objects:
        world.stores[item.meta.kind].set(item)
    registry.settle()
    return world


def make_checks(*objects: KubeObject, options: Options | None = None, books: Books | None = None) -> Checks:
    """Return the checks over such a world; by default with one cluster whose schemas are known."""
    known = {"default": book()} if books is None else books
    return Checks(make_world(*objects, options=options), options or Options(), lambda: known, FakeClock().now)


def manifest(
    spec: Mapping[str, Any] | None,
    *,
    kind: str = "ApisixRoute",
    name: str = "web",
    namespace: str = "default",
    **meta: Any,
) -> JsonObject:
    """Return an object as the API server sends it."""
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": CREATED, "generation": 1, **meta}
    return {"kind": kind, "metadata": metadata, **({} if spec is None else {"spec": dict(spec)})}


def make_review(item: JsonObject, old: JsonObject | None = None, **fields: Any) -> Review:
    """Return the review of an object: an update if there is a previous version."""
    kind, meta = item["kind"], item["metadata"]
    known: dict[str, Any] = {
        "group": GROUPS.get(kind, "apisix.apache.org"),
        "kind": kind,
        "resource": f"{kind.lower()}s",
        "namespace": meta.get("namespace", ""),
        "name": meta.get("name", ""),
        "object": item,
        "old_object": old or {},
    }
    return Review("admission.k8s.io/v1", "u1", "UPDATE" if old else "CREATE", **(known | fields))


def ask(checks: Checks, item: JsonObject, old: JsonObject | None = None) -> Verdict:
    """Return the response for an object."""
    return checks.verdict(make_review(item, old))


def rule(*plugins: JsonObject, service: str = "web", **fields: Any) -> JsonObject:
    """Return a rule of an ApisixRoute."""
    return {
        "name": "rule",
        "match": {"paths": ["/*"]},
        "backends": [{"serviceName": service, "servicePort": 80}],
        "plugins": list(plugins),
        **fields,
    }


def route_spec(*plugins: JsonObject, **fields: Any) -> JsonObject:
    """Return the spec of an ApisixRoute of one rule."""
    return {"http": [rule(*plugins, **fields)]}


def plugin(name: str, config: JsonObject | None = None, **fields: Any) -> JsonObject:
    """Return an enabled plugin."""
    return {"name": name, "enable": True, "config": config or {}, **fields}


@cache
def authority() -> CA:
    """Return the authority of all certificates."""
    return CA()


@cache
def leaf(name: str, *hosts: str) -> LeafCert:
    """Return the certificate of a name, the same one each time."""
    return authority().issue_cert(*(hosts or ("a.example.org", "*.example.org")), common_name=name)


def tls_secret(name: str, certificate: LeafCert | None = None, *, namespace: str = "default") -> Secret:
    """Return a Secret with a certificate; by default one of its own name."""
    pair = certificate or leaf(name)
    chain = b"".join(blob.bytes() for blob in pair.cert_chain_pems)
    return make_secret(name, namespace=namespace, data={"tls.crt": chain, "tls.key": pair.private_key_pem.bytes()})
