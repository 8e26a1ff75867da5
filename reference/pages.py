"""The generated files and their text."""

from pathlib import Path

from crds import KINDS
from reference import documents, ingress_nginx_groups, logs
from reference.content import annotations, conformance, dashboards, examples, ingress_nginx, objects, plugins, versions

ROOT = Path(__file__).parents[1]
PAGES = "docs/reference"
OWN_FOLDERS = (f"{PAGES}/examples", f"{PAGES}/objects", f"{PAGES}/ingress-nginx")
"""Folders that contain only generated files."""


def files() -> dict[str, str]:
    """Return path in the project → text."""
    found = {
        f"{PAGES}/objects/{kind.name.lower()}.md": objects.page(kind, examples.of_kind(kind.name))
        for kind in KINDS.values()
    }
    found |= {f"{PAGES}/examples/{topic}.md": examples.page(topic) for topic in examples.TOPICS}
    found |= {f"{PAGES}/annotations.md": annotations.page(), f"{PAGES}/versions.md": versions.page()}
    found |= {f"{PAGES}/plugins-multi-tenant.md": plugins.page(), f"{PAGES}/ingress-nginx.md": ingress_nginx.page()}
    found |= {f"{PAGES}/ingress-nginx/{name}": text for name, text in ingress_nginx_groups.pages()}
    found |= documents.files()
    found |= {"docs/gateway-api.md": conformance.page(), f"{PAGES}/logs.md": logs.page()}
    return found | {f"deploy/observability/{name}": text for name, text in dashboards.files().items()}


def stale(root: Path = ROOT) -> tuple[str, ...]:
    """Return the paths below a folder that differ from the generated text or are not generated."""
    want = files()
    there = {str(path.relative_to(root)) for own in OWN_FOLDERS for path in (root / own).glob("*")}
    return tuple(sorted(name for name in want.keys() | there if _text(root / name) != want.get(name)))


def write(root: Path = ROOT) -> None:
    """Update a folder."""
    want = files()
    for own in OWN_FOLDERS:
        for path in (root / own).glob("*"):
            if str(path.relative_to(root)) not in want:
                path.unlink()
    for name, text in want.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
