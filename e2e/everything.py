"""One object of every kind that owns records, and the reads that stories about all kinds share: records, conditions."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from trustme import CA

from apisix_ingress.model.kinds.table import RESOURCES
from crds import KINDS
from e2e.cluster.client import Manifest, wait_until
from e2e.devgateway.process import DevGateway
from e2e.golden.cases import Records, stored
from e2e.story import Stage, condition, route

V2 = "apisix.apache.org/v2"
METADATA = "metadata"
NAMESPACED = tuple(kind for kind in KINDS if RESOURCES[kind].namespaced)
"""The custom resources that live in a namespace."""


def custom(kind: str, name: str, **spec: Any) -> Manifest:
    """Return a custom resource."""
    return {"apiVersion": V2, "kind": kind, "metadata": {"name": name}, "spec": spec}


def stream_route(name: str, port: int, service: str = "web") -> Manifest:
    """Return an ApisixRoute with one TCP rule."""
    backend = {"serviceName": service, "servicePort": 80}
    rule = {"name": "rule", "protocol": "TCP", "match": {"ingressPort": port}, "backend": backend}
    return custom("ApisixRoute", name, stream=[rule])


def certificate(name: str, host: str) -> Manifest:
    """Return a Secret with a new certificate for a host."""
    leaf = CA().issue_cert(host)
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    data = {"tls.crt": chain, "tls.key": leaf.private_key_pem.bytes().decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def metadata_of(plugin: str, metadata: Mapping[str, Any]) -> Manifest:
    """Return the ConfigMap with the metadata of a plugin for the cluster `default`."""
    listed = [{"cluster": "default", "plugins": [{"name": plugin, "metadata": dict(metadata)}]}]
    body = {"data": {"config.yaml": json.dumps(listed)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": METADATA}, **body}


def of_every_kind(stage: Stage) -> list[Manifest]:
    """Return objects of every kind, which together generate a record of every kind."""
    pair = {"name": "web", "namespace": stage.namespace}
    plugins = [{"name": "cors", "enable": True}]
    found = [
        certificate("web", stage.host),
        custom("ApisixPluginConfig", "web", plugins=plugins),
        custom("ApisixUpstream", "web", retries=2),
        route(stage.host, plugin_config_name="web"),
        stream_route("stream", 9100),
        custom("ApisixTls", "web", hosts=[stage.host], secret=pair),
        custom("ApisixConsumer", "web", authParameter={"keyAuth": {"value": {"key": secrets.token_hex(8)}}}),
        custom("ApisixConsumerGroup", "web", plugins=plugins),
        custom("ApisixProto", "web", content='syntax = "proto3";'),
        custom("ApisixGlobalRule", "web", plugins=[{"name": "request-id", "enable": True}]),
        metadata_of("http-logger", {"log_format": {"host": "$host"}}),
    ]
    missing = set(NAMESPACED) - {each["kind"] for each in found}
    assert not missing, f"add an object of {sorted(missing)}"
    return found


def wait_every_kind(stage: Stage) -> Records:
    """Wait until the gateway has a record of every kind and upstreams have nodes; return the records."""

    def complete(found: Records) -> bool:
        kinds = {key.partition("/")[0] for key in found}
        nodes = [body.get("nodes") for key, body in found.items() if key.startswith("upstreams/")]
        return len(kinds) == 10 and all(nodes)

    return wait_until(lambda: stored(stage.gateway), complete, "a record of every kind")


def statuses(stage: Stage, kinds: tuple[str, ...] = NAMESPACED) -> dict[str, str]:
    """Return `Kind name` → status of the condition for the current generation, empty if there is none yet."""
    found: dict[str, str] = {}
    for kind in kinds:
        for item in stage.api.objects(kind, namespace=stage.namespace):
            said = condition(item)
            is_current = said.get("observedGeneration") == item["metadata"]["generation"]
            found[f"{kind} {item['metadata']['name']}"] = said["status"] if is_current else ""
    return found


def count(gateway: DevGateway, kind: str) -> int:
    """Return the number of records of a kind."""
    return len(gateway.records(kind))
