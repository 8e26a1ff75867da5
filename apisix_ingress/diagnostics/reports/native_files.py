"""The files that `migrate --write` writes: a manifest for each host, one for what hosts share, and the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path

from apisix_ingress.model.formats.markdown import code, literal, prose
from apisix_ingress.model.formats.yaml_output import print_yaml
from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Effect, Note
from translation.nginx.native.objects.names import object_name
from translation.nginx.native.write import Manifests
from translation.nginx.options import CATCH_ALL

SHARED = "shared.yaml"
DIFFERENCES = "DIFFERENCES.md"
_TITLES: Mapping[Effect, str] = {
    "closed": "Closed: these paths respond with 503",
    "not written": "Not written",
    "differs": "Served with a difference",
}
_ORDER = {effect: place for place, effect in enumerate(_TITLES)}
_SHOWN = 8
"""Maximum number of places that are listed for a reason."""

_DEFAULT_CERTIFICATE = (
    "https for a server name without a certificate: ingress-nginx answers with its default certificate, the gateway"
    " rejects the handshake. Set `fallback_sni` in the gateway's `config.yaml` if clients depend on it."
)
_REPORT = "The differences between the gateways themselves are in the report of `migrate`."


def write_files(found: Manifests, folder: Path) -> list[Path]:
    """Write the files into a folder, which is created, and return them.

    Raises:
        FileExistsError: The folder is not empty.
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(folder)
    texts = {_file_name(host): _yaml(objects) for host, objects in found.hosts.items() if objects}
    texts |= {SHARED: _yaml(found.shared)} if found.shared else {}
    texts[DIFFERENCES] = "\n".join(difference_lines(found)) + "\n"
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _file_name(host: str) -> str:
    return f"{object_name(host)}.yaml"


def difference_lines(found: Manifests) -> Iterator[str]:
    """Yield what changes for clients and backends once the manifests replace the Ingresses, as Markdown.

    Reasons are numbered, the most serious first; the table at the end lists the numbers of each host.
    """
    numbers = {reason: number for number, reason in enumerate(_reasons(found.notes), 1)}
    yield "# What changes with these manifests"
    yield f"\n{_counts(found)}"
    for effect, title in _TITLES.items():
        places = _places(found.notes, effect)
        if places:
            yield f"\n## {title}\n"
        for reason, where in places.items():
            yield f"{numbers[effect, reason]}. {prose(reason)}\n   ({_first(where)})"
    yield f"\n## For every host\n\n* {_DEFAULT_CERTIFICATE}\n* {_REPORT}"
    if numbers:
        yield "\n## By host\n\n| host | file | closed | not written | different |\n|---|---|---|---|---|"
        yield from _table(found, numbers)


def _reasons(notes: Iterable[Note]) -> list[tuple[Effect, str]]:
    """Return each effect with its reason once, the ones with the most paths first."""
    return [(effect, reason) for effect in _TITLES for reason in _places(notes, effect)]


def _places(notes: Iterable[Note], effect: Effect) -> dict[str, list[str]]:
    """Return the reasons of an effect with their places, the ones with the most paths first."""
    found: dict[str, list[str]] = {}
    for note in notes:
        if note.effect == effect:
            found.setdefault(note.reason, []).append(code(f"{_shown(note.host)}{note.path}"))
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _counts(found: Manifests) -> str:
    worst = {host: min((_ORDER[note.effect] for note in notes), default=len(_ORDER)) for host, notes in _by_host(found)}
    counts, number = Counter(worst.values()), "1 host" if len(worst) == 1 else f"{len(worst)} hosts"
    return (
        f"{number}: {counts[0]} with closed paths, {counts[1]} not written completely,"
        f" {counts[2]} with a difference, {counts[3]} without a known difference."
    )


def _by_host(found: Manifests) -> list[tuple[str, list[Note]]]:
    hosts: dict[str, list[Note]] = {host: [] for host in found.hosts}
    for note in found.notes:
        hosts.setdefault(note.host, []).append(note)
    return sorted(hosts.items())


def _table(found: Manifests, numbers: Mapping[tuple[Effect, str], int]) -> Iterator[str]:
    for host, notes in _by_host(found):
        cells = (
            sorted({numbers[effect, note.reason] for note in notes if note.effect == effect}) for effect in _TITLES
        )
        named = code(_file_name(host)) if found.hosts.get(host) else "none"
        yield f"| {literal(_shown(host))} | {named} | {' | '.join(', '.join(map(str, cell)) for cell in cells)} |"


def _first(places: list[str]) -> str:
    more = len(places) - _SHOWN
    return ", ".join(places[:_SHOWN]) + (f" and {more} more: see the table" if more > 0 else "")


def _shown(host: str) -> str:
    return "every other host" if host == CATCH_ALL else host


def _yaml(objects: tuple[JsonObject, ...]) -> str:
    pieces = []
    for item in objects:
        stream = StringIO()
        print_yaml(item, stream)
        pieces.append(stream.getvalue())
    return "---\n".join(pieces)
