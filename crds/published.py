"""The schemas of kinds that other projects define: the Gateway API 1.6, Kubernetes 1.34, and `v1alpha1` of 2.x.

An API server with these CRDs validates the objects. Manifests in files are validated by the same schemas.
`python -m reference.object_schemas` writes the file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from apisix_ingress.model.json import FrozenJson

FILE = Path(__file__).parent / "published.json.gz"


@cache
def published_schemas() -> Mapping[str, FrozenJson]:
    """Return kind → structural schema of its `spec`."""
    found: dict[str, FrozenJson] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found
