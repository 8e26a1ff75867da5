"""The built wheel: its content and imports. Built offline with the project's build backend."""

import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("apisix_ingress", "crds", "providers", "translation")
LOCATE = """
import importlib.metadata as metadata, importlib.util as util, json, sys
owners = metadata.packages_distributions()
print(json.dumps({name: [owners[name], util.find_spec(name).origin] for name in sys.argv[1:]}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the checkout and return its path."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = target.glob("*.whl")
    return path


def test_the_wheel_contains_only_packages_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    got = {top for top in tops if not top.endswith(".dist-info")}
    assert got == set(PACKAGES)


def test_wheel_holds_every_module_with_its_types_and_the_generated_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        got = {name for name in archive.namelist() if ".dist-info/" not in name}
    want = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for pattern in ("**/*.py", "py.typed", "**/*.yaml", "**/*.json.gz", "*/templates/*.html", "statuspage/assets/*")
        for path in (ROOT / package).glob(pattern)
    }
    assert got == want
    assert {f"{package}/py.typed" for package in PACKAGES} <= got
    assert "crds/generated/apisix.apache.org_apisixroutes.yaml" in got


def test_packages_of_the_wheel_are_imported_from_it(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{LOCATE}"
    command = [sys.executable, "-I", "-c", code, *PACKAGES]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    got = {name: (set(owners), origin) for name, (owners, origin) in json.loads(ran.stdout).items()}
    assert got == {name: ({"apisix-ingress"}, str(tmp_path / name / "__init__.py")) for name in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_the_checkout_are_those_under_test(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin == str(ROOT / package / "__init__.py")
