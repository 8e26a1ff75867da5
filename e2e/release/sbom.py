"""A CycloneDX list of what is in the image: Python packages by their metadata, Debian's by dpkg's list."""

import json
import re
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

Component = dict[str, str]


def write_sbom(root: Path, path: Path) -> tuple[Path, dict[str, int]]:
    """Write the SBOM of the files below `root`; return its path and the number of components by kind."""
    python, debian = sorted_by_name(python_components(root)), sorted_by_name(debian_components(root))
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": [*python, *debian]}
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path, {"Python packages": len(python), "Debian packages": len(debian)}


def sorted_by_name(components: Iterator[Component]) -> list[Component]:
    """Sort components, so that the same files give the same SBOM."""
    return sorted(components, key=lambda component: component["purl"])


def python_components(root: Path) -> Iterator[Component]:
    """Yield the installed distributions."""
    for metadata in root.glob("opt/**/site-packages/*.dist-info/METADATA"):
        headers = HeaderParser().parsestr(metadata.read_text(errors="replace"))
        name = re.sub(r"[-_.]+", "-", headers["Name"]).lower()
        yield component(name, headers["Version"], f"pkg:pypi/{name}@{headers['Version']}")


def debian_components(root: Path) -> Iterator[Component]:
    """Yield the packages of dpkg's list."""
    status = root / "var/lib/dpkg/status"
    for entry in status.read_text().split("\n\n") if status.exists() else []:
        headers = HeaderParser().parsestr(entry)
        if headers["Package"]:
            name, version = headers["Package"], headers["Version"]
            yield component(name, version, f"pkg:deb/debian/{name}@{version}")


def component(name: str, version: str, purl: str) -> Component:
    """Return one entry of the list."""
    return {"type": "library", "name": name, "version": version, "purl": purl}
