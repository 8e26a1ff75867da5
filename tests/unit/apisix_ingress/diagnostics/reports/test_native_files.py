"""DIFFERENCES.md of `migrate --write`: what changes, by reason and by host."""

from __future__ import annotations

from pathlib import Path

import yaml

from apisix_ingress.diagnostics.reports.native_files import difference_lines, write_files
from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Note
from translation.nginx.native.write import Manifests
from translation.nginx.options import CATCH_ALL

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


HOSTS = ("../a", "/b", ".", "a.test", "*.a.test", "wildcard.a.test", "any-host", CATCH_ALL, "shared", "x" * 5_000)


def test_every_host_has_a_file_of_its_own_in_the_folder(tmp_path: Path) -> None:
    hosts: dict[str, tuple[JsonObject, ...]] = {host: ({"kind": "ApisixRoute", "host": host},) for host in HOSTS}

    write_files(Manifests(hosts, (OBJECT,), ()), tmp_path / "out")

    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    files = [path for path in (tmp_path / "out").iterdir() if path.suffix == ".yaml"]
    assert sorted(str(yaml.safe_load(path.read_text()).get("host", "")) for path in files) == sorted(("", *HOSTS))
    named = {path.name for path in files if not path.name.startswith("sha256.")}
    assert named == {"a.test.yaml", "any-host.yaml", "shared.yaml", "wildcard.a.test.yaml"}
    assert yaml.safe_load((tmp_path / "out" / "wildcard.a.test.yaml").read_text())["host"] == "*.a.test"


def test_texts_of_hosts_and_paths_are_not_formatted() -> None:
    got = text(Note("a|`b\n# c", "/`<b>", "differs", "no <i>[x](y)"))

    assert "(``a\\|`b\\n# c/`<b>``)" in got
    assert "| a\\|\\`b\\\\n# c | none |" in got
    assert "1. no &lt;i&gt;\\[x\\](y)\n" in got
