"""Objects of ingress-nginx for tests, and their translation."""

from __future__ import annotations

from typing import Any

from apisix_ingress.diagnostics.collect.offline import Outcome, settle
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from translation.core.options import Options
from translation.nginx.options import NginxOptions

_CONFIG = ObjectKey("ConfigMap", "ingress-nginx", "config")
OPTIONS = Options(nginx=NginxOptions(config_map=_CONFIG, compact=False))
"""Options for one route per branch; `test_routes.py` has the tests of what gateways get."""

COMPACT = Options(nginx=NginxOptions(config_map=_CONFIG))
CLASS = {"kind": "IngressClass", "metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}
SERVICE = {
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": 8080}]},
}


def ingress(
    name: str, *paths: tuple[str, str], host: str = "shop.test", age: int = 0, service: str = "web", **given: str
) -> dict[str, Any]:
    """Return an Ingress with (path, type) pairs; underscores in names of annotations are dashes."""
    backend = {"service": {"name": service, "port": {"number": 80}}}
    every = [{"path": path, "pathType": kind, "backend": backend} for path, kind in paths]
    prefix = "nginx.ingress.kubernetes.io/"
    return {
        "kind": "Ingress",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "creationTimestamp": f"2026-01-01T00:00:{age:02}Z",
            "annotations": {f"{prefix}{key.replace('_', '-')}": text for key, text in given.items()},
        },
        "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": every}}]},
    }


def translated(*objects: dict[str, Any], options: Options = OPTIONS) -> Outcome:
    return settle((RESOURCES[item["kind"]].decode(item) for item in (CLASS, SERVICE, *objects)), options)
