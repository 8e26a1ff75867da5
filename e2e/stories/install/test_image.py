"""The image and its scripts: pinned, unprivileged, and without unverified downloads."""

import re
import subprocess
from pathlib import Path

import pytest

from e2e.charts.kinds import ROOT


def test_the_image_is_pinned_unprivileged_and_verifies_downloads() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    final = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert re.search(r"^ARG PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-[a-z]+$", text, re.MULTILINE)
    assert [line.split()[1] for line in lines if line.startswith("FROM ")] == ["${PYTHON_IMAGE}"] * 2 + ["scratch"]
    assert [line for line in lines if line.startswith("ADD ")] == []
    assert [line for line in final if line.startswith("USER ")] == ["USER 65532:65532"]
    assert any("PYTHONSAFEPATH=1" in line for line in final)
    installs = [line for line in lines if " install " in line and " -r " in line]
    assert len(installs) == 2
    assert all("--require-hashes" in line and "--only-binary :all:" in line for line in installs)
    assert any("pip wheel --no-deps --no-build-isolation" in line for line in lines)


def test_the_image_is_built_with_the_locked_dependencies() -> None:
    def pins(file: Path) -> set[str]:
        return set(re.findall(r"^[a-z0-9_.-]+==\S+", file.read_text(), re.MULTILINE))

    builders = pins(ROOT / "deploy" / "build.txt")
    locked = pins(ROOT / "requirements" / "dev.txt")
    assert "hatchling" in {pin.partition("==")[0] for pin in builders}
    names = {pin.partition("==")[0] for pin in locked}
    assert {pin for pin in builders if pin.partition("==")[0] in names} <= locked


@pytest.mark.parametrize("script", sorted((ROOT / "e2e" / "kind").glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_for_kind_are_bash(script: Path) -> None:
    got = subprocess.run(["bash", "-n", script], capture_output=True, text=True, timeout=10, check=False)
    assert (got.returncode, got.stderr) == (0, "")
