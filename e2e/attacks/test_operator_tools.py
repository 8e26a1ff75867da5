"""Files and objects of others in the hands of an operator: commands end, write nothing harmful and report what is so.

Servers that never end, redirect or send much are in `tests/flow/test_hostile_servers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.attacks.values import SLOW_TO_MATCH
from tests.flow.commandline import Cli

NGINX = "nginx.ingress.kubernetes.io"
CLASS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "IngressClass",
    "metadata": {"name": "nginx"},
    "spec": {"controller": "k8s.io/ingress-nginx"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]},
}
CONFIG = """
preset: multi-tenant
ingress_nginx: {enabled: true}
clusters: [{name: default, admin_url: "http://127.0.0.1:9180/apisix/admin", admin_key: of-a-test}]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line in an empty folder."""
    return Cli(tmp_path)


def ingress(name: str, *paths: str, kind: str = "Prefix", **annotations: str) -> dict[str, Any]:
    """Return an Ingress of ingress-nginx for the host of its name."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    every = [{"path": path, "pathType": kind, "backend": backend} for path in paths or ("/",)]
    given = {f"{NGINX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default", "annotations": given},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": f"{name}.test", "http": {"paths": every}}]},
    }


def write(cli: Cli, *items: dict[str, Any]) -> str:
    """Write manifests; return the name of the file."""
    cli.write("config.yaml", CONFIG)
    cli.write("objects.yaml", yaml.safe_dump_all([CLASS, SERVICE, *items]))
    return "objects.yaml"


@pytest.mark.parametrize("command", ["translate", "lint", "migrate"])
def test_a_command_ends_whatever_the_annotations_contain(command: str, cli: Cli) -> None:
    """Each of the values kept a command busy; the status is one of a report, not of a failure."""
    items = [ingress(f"slow{number}", **given) for number, given in enumerate(SLOW_TO_MATCH.values())]
    name = write(cli, *items)
    arguments = {"translate": ("-f", name), "lint": (name,), "migrate": (name,)}[command]

    got = cli(command, *arguments, "--config", "config.yaml")

    assert got.returncode in (0, 1, 3), got.stderr


def rewrites(document: object) -> Iterator[str]:
    """Yield the replacements of `regex_uri` and the values of `uri` anywhere in a document."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == "regex_uri":
                yield from value[1::2]
            elif name in ("replacePrefixMatch", "replaceFullPath", "rewriteTarget") or name.endswith("template"):
                yield str(value)
            else:
                yield from rewrites(value)
    elif isinstance(document, list):
        for item in document:
            yield from rewrites(item)


TARGETS = ("$1", "${1}", "$1/x", "$1$2")


@pytest.mark.parametrize("to", ["apisixroute", "httproute"])
async def test_migrate_writes_no_path_that_chooses_another_server(to: str, cli: Cli) -> None:
    items = [
        ingress(f"shop{number}", "/api(.*)()", kind="ImplementationSpecific", use_regex="true", rewrite_target=target)
        for number, target in enumerate(TARGETS)
    ]

    got = await cli.beside("migrate", write(cli, *items), "--to", to, "--write", "out")

    assert got.returncode in (0, 1), got.stderr
    documents = [each for path in (cli.folder / "out").rglob("*.yaml") for each in yaml.safe_load_all(path.read_text())]
    assert documents
    assert [each for each in rewrites(documents) if not each.startswith("/")] == []


def test_explain_ends_for_paths_with_many_stars(cli: Cli) -> None:
    rules = [
        {
            "name": f"r{number}",
            "match": {"hosts": ["shop.test"], "paths": [path]},
            "backends": [{"serviceName": "web", "servicePort": 80}],
        }
        for number, path in enumerate(("/" + "*" * 28 + "Z", "/*a*a*a*a*a*a*a*a*Z", "/**/**/**/**/**/Z"))
    ]
    stars = {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": "stars", "namespace": "default"},
        "spec": {"http": rules},
    }
    name = write(cli, stars)

    got = cli("explain", f"shop.test/products/{'a' * 1500}", "-f", name)

    assert got.returncode in (0, 1), got.stderr
