"""Rendered variants of the chart: the values that its tests use, each rendered once, and the resulting settings."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from apisix_ingress.settings import Settings, load_settings
from e2e.charts.chart import WITH_KEY, find, merged, render
from e2e.cluster.client import Manifest

KEY = "gatewayProxy.provider.controlPlane.auth.adminKey"
PUBLISHED_KEY = "edd1c9f034335f136f87ad84b625c8f1"
ENDPOINTS = "gatewayProxy.provider.controlPlane.endpoints"
EDGE: Mapping[str, Any] = {
    "name": "edge",
    "adminUrl": "https://edge.example.org/apisix/admin",
    "adminKey": {"value": "a-key-of-its-own"},
}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "defaults": {},
    "multi-tenant": {"preset": "multi-tenant"},
    "one replica, no election, no status": {
        "deployment": {"replicas": 1},
        "config": {"leaderElection": {"disable": True}, "status": {"enabled": False}},
    },
    "endpoints and published addresses": {
        "config": {
            "kubernetes": {"endpointSource": "endpoints", "namespaceSelector": "team in (a,b),!legacy"},
            "status": {"publishService": "gateways/apisix"},
        }
    },
    "default class of another name": {"config": {"kubernetes": {"ingressClass": "edge", "defaultIngressClass": True}}},
    "standalone gateways": {
        "gatewayProxy": {
            "provider": {
                "controlPlane": {
                    "mode": "apisix-standalone",
                    "endpoints": ["http://192.0.2.1:9180", "http://192.0.2.2:9180/apisix/admin"],
                }
            }
        },
        "config": {"kubernetes": {"secretSelector": "gateway=yes", "secrets": "referenced"}},
        "rbac": {"secrets": {"default": ["shop-tls", "keys.example.org"]}},
    },
    "several clusters with TLS": {
        "gatewayProxy": {"provider": {"controlPlane": {"tls": {"verify": False}}}},
        "clusters": [
            {
                **EDGE,
                "tls": {"caSecretName": "edge-ca", "clientSecretName": "edge-client"},
                "provider": {"concurrency": 4},
            }
        ],
    },
    "rights in some namespaces": {
        "rbac": {"scope": "namespaced"},
        "config": {
            "kubernetes": {
                "watchNamespaces": ["default", "kube-system"],
                "internalAddresses": ["10.7.0.0/16", "*.a.svc"],
                "trustedPlugins": ["our-plugin"],
            }
        },
    },
    "Gateway API and ingress-nginx": {
        "config": {
            "gatewayAPI": {
                "enabled": True,
                "addressPool": ["192.0.2.0/28"],
                "listenerPorts": {"80": 9080},
                "experimental": True,
            },
            "ingressNginx": {"enabled": True, "configMap": "ingress-nginx/controller", "fidelity": "lean"},
        }
    },
    "plugin metadata": {"gatewayProxy": {"provider": {"pluginMetadata": {"http-logger": {"log_format": {"a": "$b"}}}}}},
    "webhook with a certificate made here": {"webhook": {"enabled": True}},
    "webhook with a certificate of cert-manager": {
        "webhook": {"enabled": True, "certificate": {"certManager": {"enabled": True}}}
    },
    "webhook with a certificate that exists": {
        "webhook": {
            "enabled": True,
            "failurePolicy": "Fail",
            "namespaceSelector": {"matchLabels": {"team": "a"}},
            "certificate": {"provided": True, "secretName": "tls", "caBundle": "Y2E="},
            "clientCA": {"secretName": "clients"},
        }
    },
    "everything else": {
        "labelsOverride": {"app": "{{ .Release.Name }}"},
        "serviceMonitor": {"enabled": True, "namespace": "default", "labels": {"release": "prometheus"}},
        "podDisruptionBudget": {"minAvailable": "50%"},
        "metrics": {"service": {"port": 9090, "annotations": {"a": "b"}}},
        "networkPolicy": {
            "metrics": {"from": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]},
            "apiServer": {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [16443]},
            "admin": {"to": [{"podSelector": {"matchLabels": {"app": "apisix"}}}], "ports": [9180, 9181]},
            "extraEgress": [{"ports": [{"port": 4317}]}],
        },
        "deployment": {
            "replicas": 3,
            "annotations": {"a": "b"},
            "podAnnotations": {"a": "b"},
            "podLabels": {"a": "b"},
            "image": {"digest": "sha256:" + "0" * 64},
            "imagePullSecrets": [{"name": "pull"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "priorityClassName": "system-cluster-critical",
            "extraEnv": [{"name": "APISIX_INGRESS_LOG__LEVEL", "value": "debug"}],
            "extraVolumes": [{"name": "extra", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
            "livenessProbe": {"initialDelaySeconds": 5, "failureThreshold": 10},
            "readinessProbe": {"periodSeconds": 2},
        },
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}, "annotations": {"a": "b"}},
        "dashboards": {"enabled": True, "annotations": {"a": "b"}},
    },
}


def values_of(variant: str) -> dict[str, Any]:
    return merged(WITH_KEY, VARIANTS[variant])


@cache
def rendered(variant: str) -> tuple[Manifest, ...]:
    return tuple(render(values_of(variant), release="test", namespace="here"))


def settings_of(manifests: Sequence[Manifest], folder: Path) -> Settings:
    """Return the settings that the program would run with; they must be valid."""
    file = folder / "config.yaml"
    file.write_text(find(manifests, "ConfigMap", "test-apisix-ingress")["data"]["config.yaml"])
    return load_settings(file)
