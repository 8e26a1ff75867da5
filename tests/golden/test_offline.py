"""Every golden case through the code of `translate`, from a configuration file: one pass, no state, no gateway."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner

from apisix_ingress.commands.app import app
from tests.golden.cases import Case, all_cases, load, normal

RUNNER = CliRunner()
CASES = all_cases()


def _translate(case: Case, folder: Path, *options: str) -> dict[str, Any]:
    """Return the document that `translate` prints for the first state of a case."""
    path = case.path / "options.yaml"
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump({"kubernetes": load(path)[0] if path.exists() else {}}))
    objects = folder / "in.yaml"
    objects.write_text(case.text(""))
    arguments = ["translate", "-f", str(objects), "--config", str(config), "-o", "json", *options]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code in (0, 1), result.output
    printed: dict[str, Any] = orjson.loads(result.stdout)
    return printed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_translate_prints_the_wanted_records(case: Case, tmp_path: Path) -> None:
    printed = _translate(case, tmp_path, "--show-secrets")["records"]
    got = normal({"problems": {}, "records": {kind: found for kind, found in printed.items() if found}})
    assert got["records"] == case.want("")["records"]
