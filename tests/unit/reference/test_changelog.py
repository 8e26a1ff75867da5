"""Fragments of changes become a section of the changelog."""

import datetime
from pathlib import Path

import pytest

from reference.changelog import KINDS, fragments, main, section
from reference.pages import ROOT


def make_fragments(root: Path, **texts: str) -> Path:
    """Make a file for each text; `__` in a keyword stands for the dot before the kind."""
    (root / "changes").mkdir(exist_ok=True)
    for name, text in texts.items():
        (root / "changes" / f"{name.replace('__', '.')}.md").write_text(text)
    return root / "changes"


def test_fragments_of_the_project_are_named_rightly() -> None:
    assert set(fragments(ROOT / "changes")) == set(KINDS)


def test_sentences_stand_under_their_kind(tmp_path: Path) -> None:
    folder = make_fragments(tmp_path, b__added="Second\nline.\n", a__added="First.\n", c__security="Closed.\n")
    got = section("1.0.0", datetime.date(2026, 1, 2), fragments(folder))
    assert got == "## 1.0.0 (2026-01-02)\n\n### Security\n\n* Closed.\n\n### Added\n\n* First.\n* Second line.\n"


@pytest.mark.parametrize(("name", "text"), [("a__better", "Text."), ("text", "Text."), ("a__fixed", "\n")])
def test_a_file_that_is_not_a_fragment_is_an_error(
    tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_fragments(tmp_path, **{name: text})
    assert main(["1.0.0"], tmp_path) == 1
    assert capsys.readouterr().err.startswith(f"error: changes/{name.replace('__', '.')}.md: name it <slug>")


def test_printing_does_not_modify_the_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_fragments(tmp_path, a__fixed="Mended.")
    assert main(["1.0.0"], tmp_path) == 0
    assert "### Fixed\n\n* Mended.\n" in capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == ["a.fixed.md"]


def test_a_release_is_added_on_top_and_consumes_its_fragments(tmp_path: Path) -> None:
    make_fragments(tmp_path, a__fixed="Mended.")
    assert main(["1.0.0", "--write"], tmp_path) == 0
    folder = make_fragments(tmp_path, b__added="More.")
    assert main(["1.1.0", "--write"], tmp_path) == 0
    got = (tmp_path / "CHANGELOG.md").read_text()
    assert got.startswith("# Changelog\n\n## 1.1.0 (")
    assert got.index("* More.") < got.index("## 1.0.0 (") < got.index("* Mended.")
    assert list(folder.iterdir()) == []
