"""The site of the documents: it builds offline without warnings, and its YAML is valid."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.commands.app import commands
from apisix_ingress.settings import Settings
from crds import KINDS, parse_spec, unknown_fields
from reference.content.versions import versions
from reference.site import without_outside_links

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
SITE_TIMEOUT = 110
COMMAND = re.compile(r"^ *\$ (?:until )?(?:\.venv/bin/)?apisix-ingress ([a-z][^\n|;&]*)", re.MULTILINE)
OPTION = re.compile(r"(?<=\s)--?[a-zA-Z][a-z-]*")
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LOADED = re.compile(r"""<(?:script|img|iframe)[^>]*src=["']?(?:https?:)?//|<link[^>]*rel=["']?stylesheet[^>]*//""")


def blocks() -> Iterator[tuple[str, str]]:
    """Yield page and text of every YAML block, without its indentation."""
    for page in sorted(DOCS.rglob("*.md")):
        for indent, text in BLOCK.findall(page.read_text()):
            yield str(page.relative_to(DOCS)), "\n".join(line.removeprefix(indent) for line in text.splitlines())


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, Any]]:
    return [(page, document) for page, text in blocks() for document in yaml.safe_load_all(text)]


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=SITE_TIMEOUT, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []


def test_custom_resources_on_pages_have_known_fields(documents: list[tuple[str, Any]]) -> None:
    found = [(page, each) for page, each in documents if isinstance(each, dict) and each.get("kind") in KINDS]
    wrong = [(page, unknown_fields(each["kind"], each["spec"])) for page, each in found]
    assert [(page, fields) for page, fields in wrong if fields] == []
    assert len([parse_spec(each["kind"], each["spec"]) for _, each in found]) > 20


def test_settings_on_pages_are_settings(documents: list[tuple[str, Any]]) -> None:
    sections = set(Settings.model_fields)
    found = [each for _, each in documents if isinstance(each, dict) and each.keys() <= sections]
    assert len([Settings.model_validate(each) for each in found]) >= 4


def test_commands_on_pages_exist_with_their_options() -> None:
    known_options = {command.name: {name for each in command.options for name in each.names} for command in commands()}
    wrong = []
    seen = set()
    for page in sorted(DOCS.rglob("*.md")):
        for line in COMMAND.findall(page.read_text().replace("\\\n", "")):
            name, _, rest = line.partition(" ")
            seen.add(name)
            known = known_options.get(name, set())
            asked = {word for word in OPTION.findall(rest) if word not in {"-o", *known}}
            if name not in known_options or asked - {"--help"}:
                wrong.append((page.name, line))
    assert wrong == []
    assert seen >= {"crds", "diff", "doctor", "explain", "lint", "orphans", "run", "translate", "wait"}


def test_links_out_of_the_documents_become_words() -> None:
    text = "See [the rules](../CONTRIBUTING.md#a), [here](scale.md), [nowhere](../no.md)."
    got = without_outside_links(text, DOCS / "index.md")
    assert got == "See the rules, [here](scale.md), [nowhere](../no.md)."


def test_versions_are_the_tested_ones() -> None:
    found = versions()
    kubernetes = (PROJECT / "e2e" / "cluster" / "binaries" / "go.mod").read_text()
    helm = (PROJECT / "e2e" / "cluster" / "helm" / "go.mod").read_text()
    said = {name: str([each["tested"] for each in found[name] if each["tested"]]) for name in ("kubernetes", "helm")}
    assert re.findall(r"k8s\.io/kubernetes v([0-9.]+)", kubernetes)[0] in said["kubernetes"]
    assert re.findall(r"helm\.sh/helm/v3 v([0-9.]+)", helm)[0] in said["helm"]
    pages = (PROJECT / "e2e" / "devgateway" / "dataplane" / "error_pages.py").read_text()
    assert re.findall(r"APISIX/([0-9.]+)", pages)[0] in str(found["apisix"])


def test_every_python_that_ci_runs_is_named() -> None:
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "ci.yml").read_text())
    want = workflow["jobs"]["unit"]["strategy"]["matrix"]["python"]
    assert [each["version"] for each in versions()["python"]] == want
