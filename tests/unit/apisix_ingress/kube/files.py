"""Files with routes, as users write them."""

import os
from pathlib import Path

from apisix_ingress.model.keys import ObjectKey

ROUTE = """
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: {name: %s, creationTimestamp: 2026-01-02T03:04:05Z}
spec: {http: [], note: %s}
"""
WEB = ObjectKey("ApisixRoute", "default", "web")


def write(path: Path, text: str) -> Path:
    """Write a file atomically, as careful editors do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    os.replace(fresh, path)
    return path
