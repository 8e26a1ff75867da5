"""The kinds that the stories about the API client use, and their CRDs."""

from functools import partial
from typing import Any

from apisix_ingress.model.decoders import decode_config_map, decode_custom
from apisix_ingress.model.kinds.resource import Resource

CONFIG_MAPS = Resource("ConfigMap", "", "v1", "configmaps", decode_config_map)
THINGS = Resource("Thing", "contract.example.com", "v1", "things", partial(decode_custom, kind="Thing"), optional=True)
LATECOMERS = Resource(
    "Latecomer", "late.example.com", "v1", "latecomers", partial(decode_custom, kind="Latecomer"), optional=True
)


def definition(resource: Resource) -> dict[str, Any]:
    """Return a CRD with a status subresource and a schema that accepts any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [version],
        },
    }
