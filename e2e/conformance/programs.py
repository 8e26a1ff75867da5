"""The suite and its echo server, built from the Go module in `suite/` once, and the CRDs of the same version."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from e2e.cluster.binaries import module_version
from e2e.cluster.gobuild import BinariesError, Recipe, cache_root, cached, say_on_stderr

MODULE = Path(__file__).parent / "suite"
API = "sigs.k8s.io/gateway-api"


def located() -> Path:
    """Return the folder with `suite` and `echo-basic`.

    Raises:
        BinariesError: when they cannot be built.
    """
    text = (MODULE / "go.mod").read_text()
    version = module_version(text, f"{API}/conformance")
    recipe = Recipe(
        MODULE,
        (".", f"{API}/conformance/echo-basic"),
        (),
        title=f"the conformance suite of the Gateway API {version} (some minutes)",
        without_go="Go is needed once to build the conformance suite: install Go 1.26 or newer",
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return cached(cache_root(os.environ) / f"gateway-api-{version}-{digest}", recipe, say_on_stderr)


def crds() -> Path:
    """Return the folder with the CRDs, of the experimental channel.

    Raises:
        BinariesError: when Go does not have the module.
    """
    go = shutil.which("go")
    if go is None:
        raise BinariesError("Go is needed for the CRDs of the Gateway API: install Go 1.26 or newer")
    command = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", API]
    found = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=False)
    if found.returncode:
        raise BinariesError(f"go list {API}: {found.stderr.strip()}")
    return Path(found.stdout.strip()) / "config" / "crd" / "experimental"


if __name__ == "__main__":
    print(located(), crds())
