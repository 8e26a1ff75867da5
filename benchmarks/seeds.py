"""API servers with objects: created once per shape, kept in the cache folder, and started from a copy for each run.

So every controller gets the same objects, without a status that another controller wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import crds
from benchmarks.world import GATEWAY, Shape, World
from e2e.cluster.client import KubeClient
from e2e.cluster.gobuild import cache_root
from e2e.cluster.local import LocalCluster
from e2e.definitions import gateway_kinds
from e2e.definitions.gateway_kinds import CONTROLLER

WORKERS = 8
REVISIONS = 100_000
"""Revisions to create first: 1.8 compares resourceVersions as strings, so it would lose changes across 999 → 1000."""

RaiseRevision = Callable[[str, int], None]


@contextmanager
def cluster_with(shape: Shape, raise_revision: RaiseRevision) -> Iterator[LocalCluster]:
    """Start an API server with the objects of a shape in their first version."""
    seed = _folder(shape)
    if not seed.is_dir():
        _make(shape, seed, raise_revision)
    with tempfile.TemporaryDirectory(prefix="apisix-ingress-bench-") as root:
        cluster = LocalCluster(root=Path(root))
        shutil.copytree(seed, cluster.layout.etcd_data)
        with cluster:
            # Nothing needs it from now on, and it would use CPU time.
            cluster.controller_manager.stop()
            yield cluster


def _folder(shape: Shape) -> Path:
    kinds = hashlib.sha256(json.dumps(list(crds.manifests()), sort_keys=True).encode()).hexdigest()[:12]
    return cache_root(os.environ) / "seeds" / f"{shape.name}-{kinds}"


def _make(shape: Shape, seed: Path, raise_revision: RaiseRevision) -> None:
    began = time.monotonic()
    print(f"creating the objects of {shape.name}, once ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="apisix-ingress-bench-") as root:
        cluster = LocalCluster(root=Path(root))
        with cluster, cluster.client() as api:
            cluster.controller_manager.stop()
            raise_revision(etcd_url(cluster), REVISIONS)
            api.apply(crds.manifests())
            if shape.kind == "HTTPRoute":
                gateway_kinds.install(api)
                every = gateway_kinds.gateway(GATEWAY)
                api.apply([gateway_kinds.make("GatewayClass", "apisix", controllerName=CONTROLLER), every])
            _create(api, World(shape))
        seed.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(cluster.layout.etcd_data, partial := seed.with_suffix(f".{os.getpid()}"))
    partial.rename(seed)
    print(f"... in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def etcd_url(cluster: LocalCluster) -> str:
    """Return the URL of a cluster's etcd."""
    flag = "--etcd-servers="
    return next(word.removeprefix(flag) for word in cluster.apiserver.command if word.startswith(flag))


def _create(api: KubeClient, world: World) -> None:
    for number in range(world.shape.namespaces):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"bench-{number}"}})

    def create(number: int) -> None:
        for manifest in world.objects(number):
            api.create(manifest)

    in_parallel(range(world.shape.size), create)


def in_parallel(numbers: Iterable[int], do: Callable[[int], None]) -> None:
    """Call a function for each number, several at once; the first error ends it."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(do, numbers):
            pass
