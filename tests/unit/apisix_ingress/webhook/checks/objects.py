"""Objects of every kind."""

from apisix_ingress.model.json import JsonObject
from tests.unit.apisix_ingress.webhook.worlds import (
    plugin,
    route_spec,
)

WITH_CLASS = (
    ("ApisixRoute", route_spec()),
    ("ApisixUpstream", {"retries": 1}),
    ("ApisixPluginConfig", {"plugins": [plugin("redirect")]}),
    ("ApisixTls", {"hosts": ["a.example.org"], "secret": {"name": "cert", "namespace": "default"}}),
    ("ApisixConsumer", {"authParameter": {"keyAuth": {"value": {"key": "k"}}}}),
    ("ApisixConsumerGroup", {"plugins": [plugin("redirect")]}),
    ("ApisixSecretManager", {"type": "vault", "config": {}}),
    ("ApisixProto", {"content": "message Empty {}"}),
    ("ApisixGlobalRule", {"plugins": [plugin("redirect")]}),
    ("ApisixClusterConfig", {"monitoring": {"prometheus": {"enable": True}}}),
)
"""A valid object of each kind that has a class."""


INGRESS: JsonObject = {
    "ingressClassName": "apisix",
    "rules": [
        {
            "host": "a.example.org",
            "http": {
                "paths": [
                    {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
                ]
            },
        }
    ],
}
