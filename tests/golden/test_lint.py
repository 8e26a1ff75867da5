"""Every golden case through `lint`: each problem that `translate` reports has a code and a position."""

from pathlib import Path

import pytest

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.findings import find
from tests.golden.cases import Case, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_lint_finds_every_problem_at_its_position(case: Case, tmp_path: Path) -> None:
    text, file = case.text(""), str(tmp_path / "in.yaml")
    Path(file).write_text(text)
    loaded = load([file])
    found = find(loaded, case.options())
    problems = settle(loaded.objects, case.options()).problems
    got = {(item.object, item.code.word, item.path, item.message) for item in found}
    assert {(str(owner), each.code, each.path, each.message) for owner, each in problems} <= got
    assert [item for item in found if item.file != file] == []
    lines = len(text.splitlines())
    assert [item for item in found if not 1 <= item.line <= lines] == []
