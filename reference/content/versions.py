"""The page of versions, from `versions.yaml`."""

from pathlib import Path
from typing import Any

import yaml

from reference.markdown import cell, table

FILE = Path(__file__).parents[2] / "versions.yaml"
TITLES = {"python": "Python", "kubernetes": "Kubernetes", "apisix": "Apache APISIX", "helm": "Helm"}
INTRODUCTION = """\
# Versions

The versions that this release was tested with. *Not tested* versions may work. `versions.yaml` contains the same in
machine-readable form.
"""


def versions() -> dict[str, Any]:
    """Return the file."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


def page() -> str:
    """Return the page."""
    found = versions()
    parts = [f"{INTRODUCTION}\napisix-ingress {found['apisix-ingress']}:"]
    for name, title in TITLES.items():
        rows = [(f"{each['version']}", cell(str(each["tested"] or "not tested"))) for each in found[name]]
        parts += [f"## {title}", table(("version", "tested"), rows)]
    return "\n\n".join(parts) + "\n"
