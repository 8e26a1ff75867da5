"""The language lint: findings, their positions, and skipped text."""

import subprocess
from pathlib import Path

import pytest

from reference import language
from reference.language import Finding, findings, main, sources

ADVICE = language.BANNED[r"\bnobody\b"]


def phrases(file: str, text: str) -> list[tuple[int, str]]:
    return [(each.line, each.phrase) for each in findings(file, text)]


@pytest.mark.parametrize(
    "text",
    [
        "kind 'x' is none",
        "the body is no JSON",
        "Nobody can come in.",
        "keyAuth goes before it",
        "so the settings are for nothing",
        "24 are the most; make several objects of it",
        "The rest is decided elsewhere.",
        "see that it runs",
        "conflicts: of two objects the older wins",
        "The file can't be read.",
        "So many seconds a write may take.",
        "Somebody else changed it.",
        "A gateway refuses the record.",
        "Why it cannot lead, for people.",
        "The gateway does not answer.",
        "There was no answer within 5 s.",
        "Requests are answered with 404.",
        "At most so many records are read.",
        "Records wait for each other in a circle.",
        "The write is tried again.",
        "Status updates are switched off.",
    ],
)
def test_reports_phrases_that_the_guide_rules_out(text: str) -> None:
    assert phrases("a.md", text)


@pytest.mark.parametrize(
    "text",
    [
        "There is no route for the host.",
        "It is no longer served.",
        "You can see that the route is gone.",
        "deletes are held back",
        "the limit is 24; split the object",
        "a gateway refuses connections",
        "The gateway does not respond.",
    ],
)
def test_accepts_plain_english(text: str) -> None:
    assert phrases("a.md", text) == []


def test_finds_a_phrase_over_the_end_of_a_line() -> None:
    assert phrases("a.md", "One.\n\nkeyAuth goes\n  before it.\n") == [(3, "goes before it"), (3, "goes before")]


def test_reads_docstrings_comments_and_names_of_tests() -> None:
    module = 'def test_nobody() -> None:\n    """Nobody reads it."""\n    assert got == "nobody"  # for nobody\n'
    assert phrases("tests/unit/test_it.py", module) == [(1, "nobody"), (2, "Nobody"), (3, "nobody")]
    assert phrases("translation/it.py", module) == [(2, "Nobody"), (3, "nobody"), (3, "nobody")]


def test_rules_for_the_start_of_a_docstring_ignore_other_places() -> None:
    assert phrases("translation/it.py", '"""Say whether it is."""\n') == [(1, "Say whether")]
    assert phrases("translation/it.py", '"""Types that say whether it is."""\n') == []


def test_skips_code_in_pages() -> None:
    page = "Write `nobody`.\n\n```console\n$ nobody\n```\n\n~~~\nnobody\n~~~\n<!-- nobody -->\nNobody.\n"
    assert phrases("a.md", page) == [(11, "Nobody")]


def test_reads_strings_and_comments_of_modules_and_nothing_else() -> None:
    module = '"""Doc.\n\nNobody here.\n"""\n# for nobody\nnobody = f"kind {1} is none"\n'
    assert phrases("a.py", module) == [(3, "Nobody"), (5, "nobody"), (6, "is none")]


def test_a_finding_names_the_place_and_what_to_write() -> None:
    assert str(Finding("a.md", 3, "Nobody", ADVICE)) == f"a.md:3: 'Nobody': write {ADVICE}"


def _repository(root: Path) -> Path:
    for name, text in {
        "docs/a.md": "Nobody.",
        "docs/b.md": "Fine.",
        "providers/a.py": "x = 'nobody'",
        "tests/a.md": "Nobody.",
        "e2e/a.py": "x = 'nobody'",
        "deploy/a.yaml": "# told",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def test_checks_pages_product_chart_and_modules_of_tests(tmp_path: Path) -> None:
    assert sources(_repository(tmp_path)) == [
        "deploy/a.yaml",
        "docs/a.md",
        "docs/b.md",
        "e2e/a.py",
        "providers/a.py",
    ]


def test_findings_make_the_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = _repository(tmp_path)
    assert main([], root) == 1
    assert "docs/a.md:1: 'Nobody'" in capsys.readouterr().err
    assert main(["docs/b.md"], root) == 0
