"""An ApisixClusterConfig for an unknown gateway cluster."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.objects import CustomObject
from translation.core.options import Options


def cluster_name_notes(item: CustomObject, options: Options) -> Iterator[str]:
    """Yield a warning if no gateway cluster has the name of the object."""
    if item.meta.name not in options.clusters:
        known = ", ".join(sorted(options.clusters))
        yield f"metadata.name: unknown gateway cluster {item.meta.name}, so the object has no effect; known: {known}"
