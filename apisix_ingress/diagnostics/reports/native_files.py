"""The files that `migrate --write` makes: a manifest for each host, one for what hosts share, and the differences."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from apisix_ingress.model.formats.yaml_output import print_yaml
from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Note
from translation.nginx.native.objects.names import object_name
from translation.nginx.native.write import Manifests

SHARED = "shared.yaml"
DIFFERENCES = "DIFFERENCES.md"
_TITLES = {
    "closed": "Closed: these paths answer 503, since a protection cannot be expressed",
    "not written": "Not written",
    "differs": "Served with a difference",
}


def write_files(found: Manifests, folder: Path) -> list[Path]:
    """Write the files into a folder, which is created, and return them.

    Raises:
        FileExistsError: The folder is not empty.
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(folder)
    texts = {f"{object_name(host)}.yaml": _yaml(objects) for host, objects in found.hosts.items() if objects}
    texts |= {SHARED: _yaml(found.shared)} if found.shared else {}
    texts[DIFFERENCES] = "\n".join(difference_lines(found.notes)) + "\n"
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def difference_lines(notes: tuple[Note, ...]) -> Iterator[str]:
    """Yield what the manifests do not express, as Markdown; paths with one reason are together."""
    yield "# Differences between the manifests and ingress-nginx"
    if not notes:
        yield "\nNone that `migrate` knows of. The report of `migrate` has the differences between the gateways."
    for effect, title in _TITLES.items():
        reasons: dict[str, list[str]] = {}
        for note in notes:
            if note.effect == effect:
                reasons.setdefault(note.reason, []).append(f"`{note.host}{note.path}`")
        if reasons:
            yield f"\n## {title}\n"
            yield from (f"* {reason}\n  ({', '.join(places)})" for reason, places in sorted(reasons.items()))


def note_documents(notes: tuple[Note, ...]) -> list[JsonObject]:
    """Return the notes as JSON."""
    return [{"host": each.host, "path": each.path, "effect": each.effect, "reason": each.reason} for each in notes]


def _yaml(objects: tuple[JsonObject, ...]) -> str:
    pieces = []
    for item in objects:
        stream = StringIO()
        print_yaml(item, stream)
        pieces.append(stream.getvalue())
    return "---\n".join(pieces)
