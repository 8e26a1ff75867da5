"""The program as a plugin of the real kubectl, which also completes its command lines; no API server is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from apisix_ingress import __version__
from e2e.cluster.binaries import locate

PROGRAMS = {"kubectl-apisix_ingress": "main", "kubectl_complete-apisix_ingress": "complete_kubectl"}
"""The scripts that the package installs, with their functions."""


@pytest.fixture
def kubectl(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The real kubectl, and an environment with the plugin in PATH."""
    found = locate().kubectl
    assert found is not None
    for name, function in PROGRAMS.items():
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\nfrom apisix_ingress.cli import {function}\n{function}()\n")
        script.chmod(0o755)
    return found, {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def run(kubectl: tuple[Path, dict[str, str]], *arguments: str) -> str:
    """Run kubectl; return what it prints."""
    program, environment = kubectl
    done = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_kubectl_runs_the_program_as_its_plugin(kubectl: tuple[Path, dict[str, str]]) -> None:
    assert run(kubectl, "apisix-ingress", "version") == f"{__version__}\n"
    assert run(kubectl, "apisix-ingress", "wait", "-h").startswith("Usage: kubectl apisix-ingress wait ")


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["ve"], ["verify", "version"]),
        (["wait", "ApisixGl"], ["ApisixGlobalRule"]),
        (["lint", "--suppress", "ServiceN"], ["ServiceNotFound"]),
        (["status", "--prob"], []),
        (["hosts", "--prob"], ["--problems"]),
    ],
)
def test_kubectl_completes_the_words_of_its_plugin(
    kubectl: tuple[Path, dict[str, str]], words: list[str], want: list[str]
) -> None:
    *found, directive = run(kubectl, "__complete", "apisix-ingress", *words).splitlines()
    assert found == want
    assert directive == (":4" if want else ":0")
