"""DIFFERENCES.md of `migrate --write`: what changes, by reason and by host."""

from __future__ import annotations

from pathlib import Path

from apisix_ingress.diagnostics.reports.native_files import difference_lines, write_files
from translation.nginx.native.model import Note
from translation.nginx.native.write import Manifests

OBJECT = {"kind": "ApisixRoute"}


def text(*notes: Note, hosts: tuple[str, ...] = ()) -> str:
    return "\n".join(difference_lines(Manifests(dict.fromkeys(hosts, (OBJECT,)), (), notes)))


def test_reasons_are_numbered_and_each_host_lists_its_numbers() -> None:
    closed, differs = Note("a.test", "/x", "closed", "no auth"), Note("a.test", "/", "differs", "no cookie")

    got = text(closed, differs, Note("b.test", "/", "differs", "no cookie"), hosts=("a.test", "b.test", "c.test"))

    assert "1. no auth\n   (`a.test/x`)" in got
    assert "2. no cookie\n   (`a.test/`, `b.test/`)" in got
    assert got.endswith("| a.test | `a.test.yaml` | 1 |  | 2 |\n| b.test | `b.test.yaml` |  |  | 2 |\n| c.test | "
                        "`c.test.yaml` |  |  |  |")  # fmt: skip
    assert "3 hosts: 1 with closed paths, 0 not written completely, 1 with a difference, 1 without" in got


def test_a_reason_of_many_paths_names_some_of_them() -> None:
    got = text(*(Note(f"h{number}.test", "/", "differs", "no cookie") for number in range(20)))

    assert "and 12 more: see the table" in got


def test_the_default_certificate_is_named_for_every_host() -> None:
    assert "fallback_sni" in text(hosts=("a.test",))


def test_a_host_that_looks_like_a_path_is_written_into_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    write_files(Manifests(dict.fromkeys(("../a", "/b", ".", "a.test"), (OBJECT,)), (), ()), folder)

    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    got = {path.name for path in folder.iterdir()}
    assert got == {"..yaml", "..%2Fa.yaml", "%2Fb.yaml", "a.test.yaml", "DIFFERENCES.md"}
