"""The kinds that the API server in this process serves."""

from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is served."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True
    status: bool = True

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"


KINDS = (
    Kind("Namespace", "v1", "namespaces", namespaced=False),
    Kind("Service", "v1", "services"),
    Kind("Endpoints", "v1", "endpoints", status=False),
    Kind("Pod", "v1", "pods"),
    Kind("Secret", "v1", "secrets", status=False),
    Kind("ConfigMap", "v1", "configmaps", status=False),
    Kind("Event", "v1", "events", status=False),
    Kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices", status=False),
    Kind("Ingress", "networking.k8s.io/v1", "ingresses"),
    Kind("IngressClass", "networking.k8s.io/v1", "ingressclasses", namespaced=False, status=False),
    Kind("Lease", "coordination.k8s.io/v1", "leases", status=False),
    Kind("ApisixRoute", "apisix.apache.org/v2", "apisixroutes"),
    Kind("ApisixUpstream", "apisix.apache.org/v2", "apisixupstreams"),
    Kind("ApisixPluginConfig", "apisix.apache.org/v2", "apisixpluginconfigs"),
)
