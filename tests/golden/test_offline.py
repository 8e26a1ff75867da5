"""Every golden case through the code of `translate`, from a configuration file: one pass, no state, no gateway."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from apisix_ingress.commands.app import run_program
from tests.golden.cases import Case, all_cases, load, normal

CASES = all_cases()


def _translate(case: Case, folder: Path, printed: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return the document that `translate` prints for the first state of a case."""
    path = case.path / "options.yaml"
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump({"kubernetes": load(path)[0] if path.exists() else {}}))
    objects = folder / "in.yaml"
    objects.write_text(case.text(""))
    arguments = ["translate", "-f", str(objects), "--config", str(config), "-o", "json", *options]
    with pytest.raises(SystemExit) as ended:
        run_program(arguments, "apisix-ingress")
    got = printed.readouterr()
    assert ended.value.code in (0, 1), got.err
    document: dict[str, Any] = orjson.loads(got.out)
    return document


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_translate_prints_the_expected_records(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = _translate(case, tmp_path, capsys, "--show-secrets")["records"]
    got = normal({"problems": {}, "records": {kind: found for kind, found in printed.items() if found}})
    assert got["records"] == case.want("")["records"]
