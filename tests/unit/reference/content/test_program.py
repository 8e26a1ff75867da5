"""The generated reference: consistent with the program, complete, and in the right place."""

from pathlib import Path

import pytest

from apisix_ingress.commands.app import MODULES
from apisix_ingress.model.problem_codes.table import NUMBERS
from reference.content.program import main, pages, stale, write

FOLDER = Path(__file__).parents[4] / "docs" / "reference"


def test_pages_in_the_repository_are_those_of_the_program() -> None:
    assert stale(FOLDER) == []


def test_every_command_and_code_is_listed() -> None:
    found = pages()
    for name in MODULES:
        assert f"\n## {name}\n" in found[Path("cli.md")]
    assert {path.stem for path in found if path.parent.name == "codes"} == {"index", *NUMBERS}


def test_options_are_reported_with_their_short_names_and_defaults() -> None:
    page = pages()[Path("cli.md")]
    assert "| `--output`, `-o` `text\\|json\\|sarif\\|github` | `text` | Format. |\n" in page
    assert "| `--filename`, `-f` `PATH` |  | Manifests, a file or a folder; - is stdin. |\n" in page
    assert "| `URL` |  | https://host/path, host/path or /path. |\n" in page


def test_write_makes_the_folder_equal(tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    old = tmp_path / "codes" / "AIX9999.md"
    old.write_text("gone")
    assert len(stale(tmp_path)) == len(pages()) + 1
    write(tmp_path)
    assert (stale(tmp_path), old.exists()) == ([], False)


def test_program_checks_writes_and_explains_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--check"]) == 1
    assert "docs/reference/cli.md is not up to date: run python -m" in capsys.readouterr().err
    assert (main(["--write"]), main(["--check"])) == (0, 0)
    assert main([]) == 2
