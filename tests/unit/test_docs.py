"""The documents: every setting is on the configuration page, and links have targets."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel, SecretStr

from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.model.formats.size import parse_size
from apisix_ingress.settings import Settings

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md")]
DOCUMENTS = [*PAGES, *sorted((PROJECT / "docs").rglob("*.md"))]
ROW = re.compile(r"\| `([a-z_.\[\]]+)` \| `([^`]*)` \| (.+) \|")
NAMES = re.compile(r" {2,}")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted key and the default of every setting; items of a list have the key `[]`."""
    for name, field in model.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        section = next((kind for kind in kinds if issubclass(kind, BaseModel)), None)
        if section is None:
            yield prefix + name, field.default
        else:
            yield from settings(
                section, f"{prefix}{name}[]." if section is not field.annotation else f"{prefix}{name}."
            )


def documented() -> dict[str, str]:
    """Return key → default from the page."""
    text = (PROJECT / "docs" / "configuration.md").read_text()
    rows = [match.groups() for line in text.splitlines() if (match := ROW.fullmatch(line))]
    found = {key: default for key, default, _ in rows}
    assert len(found) == len(rows), "a key is listed twice"
    return found


def as_value(text: str, default: object) -> object:
    """Return the value of a default on the page, with the type of the setting."""
    if isinstance(default, float):
        return parse_duration(text)
    if text.endswith("iB"):
        return parse_size(text)
    value = yaml.safe_load(text)
    if isinstance(default, SecretStr):
        return SecretStr(value)
    return tuple(value) if isinstance(default, tuple) else value


def test_every_setting_is_documented_with_its_default() -> None:
    want = dict(settings(Settings))
    got = documented()
    assert got.keys() == want.keys()
    assert {key: as_value(text, want[key]) for key, text in got.items()} == want


def test_settings_are_documented_in_the_order_of_the_model() -> None:
    assert list(documented()) == [key for key, _ in settings(Settings)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_relative_links_lead_somewhere(document: Path) -> None:
    targets = [link.partition("#")[0] for link in LINK.findall(document.read_text()) if "://" not in link]
    assert [target for target in targets if target and not (document.parent / target).exists()] == []


def test_architecture_names_every_part_of_the_tree_and_no_other() -> None:
    tree = (PROJECT / "docs" / "architecture.md").read_text().split("```")[1]
    named = [
        (line[:1] == " ", re.findall(r"[a-z_0-9]+(?:\.py|/)", NAMES.split(line.strip())[0]))
        for line in tree.splitlines()
    ]
    top, core = ({name for inside, names in named if inside is want for name in names} for want in (False, True))
    assert [name for name in sorted(top) if not (PROJECT / name).is_dir()] == []
    there = (PROJECT / "apisix_ingress").iterdir()
    assert core == {f"{path.name}/" if path.is_dir() else path.name for path in there if _is_part(path)}


def _is_part(path: Path) -> bool:
    return (path / "__init__.py").is_file() or (path.suffix == ".py" and not path.name.startswith("__"))


def test_every_test_that_the_security_model_names_exists() -> None:
    text = (PROJECT / "docs" / "security.md").read_text()
    named = re.findall(r"`([a-z0-9_/]+\.py)::(test_\w+)`", text)
    assert len(named) > 10
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^(async )?def {name}\(", (PROJECT / file).read_text(), re.MULTILINE)
    ]
    assert missing == []
