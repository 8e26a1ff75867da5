"""The Helm chart, rendered by helm, and the files that are generated from it or for it.

It generates the chart's copies of CRDs, alerts and dashboards, the lists of kinds, the comments of values.yaml, the
kustomize bases (renders of the chart) and the table of values in `docs/install.md`. `python -m e2e.charts.chart`
writes them again with `--write`, and fails with `--check` if one is out of date. The tests check the manifests.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from e2e.charts.kinds import BASES, CHART, KUSTOMIZE, NAME, ROOT, TEMPLATE, copies, template
from e2e.charts.values_file import VALUES, commented
from e2e.cluster.binaries import locate_helm
from e2e.cluster.client import Manifest, load_manifests

PAGE = ROOT / "docs" / "install.md"
README = CHART / "README.md"
BEGIN, END = "<!-- values begin -->\n", "<!-- values end -->\n"
HELM_TIMEOUT = 60.0

ADMIN_SECRET: Mapping[str, Any] = {"valueFrom": {"secretKeyRef": {"name": "apisix-admin-key", "key": "admin-key"}}}

Values = Mapping[str, Any]


class HelmError(Exception):
    """Helm failed; the message is Helm's."""


@dataclass(frozen=True, slots=True)
class Property:
    """A value of the chart: its dotted name, the part of the schema that describes it, its default."""

    name: str
    schema: Mapping[str, Any]
    default: object = None

    @property
    def has_effect(self) -> bool:
        """Whether it has an effect, unlike accepted values of other charts."""
        return not str(self.schema["description"]).startswith("No effect here")


def helm(*arguments: str | Path, stdin: str | None = None) -> str:
    """Run helm and return what it printed.

    Raises:
        HelmError: It failed.
    """
    command = [str(locate_helm()), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=HELM_TIMEOUT, check=False)
    if done.returncode != 0:
        raise HelmError(done.stderr.strip())
    return done.stdout


def merged(*layers: Values) -> dict[str, Any]:
    """Return values where later layers override earlier ones, as in helm: only mappings are merged deeply."""
    found: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = found.get(name)
            found[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return found


def nested(name: str, value: object) -> dict[str, Any]:
    """Return values that set one dotted name."""
    for part in reversed(name.split(".")):
        value = {part: value}
    return dict(value) if isinstance(value, Mapping) else {}


REGISTRY = "registry.example.org/"
WITH_IMAGE = nested("image.repository", f"{REGISTRY}{NAME}")
WITH_KEY = merged(nested("gatewayProxy.provider.controlPlane.auth.adminKey", ADMIN_SECRET), WITH_IMAGE)
"""The only values without a default."""


def render(values: Values = WITH_KEY, *, release: str = NAME, namespace: str = NAME) -> list[Manifest]:
    """Return the rendered chart without the CRDs.

    Raises:
        HelmError: The values are rejected.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(values, file)
        file.flush()
        return load_manifests(helm("template", release, CHART, "--namespace", namespace, "--values", file.name))


def find(manifests: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """Return the only manifest of a kind, or the one with a name."""
    (found,) = (each for each in manifests if each["kind"] == kind and name in ("", each["metadata"]["name"]))
    return found


def properties() -> Iterator[Property]:
    """Yield every value of the chart that is not a section, in the order of the schema."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    yield from _properties(schema, schema["definitions"], defaults, "")


def _properties(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], default: object, prefix: str
) -> Iterator[Property]:
    for name, part in schema["properties"].items():
        below = default.get(name) if isinstance(default, dict) else None
        target = definitions[part["allOf"][0]["$ref"].rpartition("/")[2]] if "allOf" in part else part
        if "properties" in target:
            yield from _properties(target, definitions, below, f"{prefix}{name}.")
        else:
            yield Property(prefix + name, part, below)
            items = target.get("items", {})
            if "properties" in items and prefix + name == "clusters":
                yield from _properties(items, definitions, None, f"{prefix}{name}[].")


def table() -> str:
    """Return the table of values for the page."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for each in (each for each in properties() if each.has_effect):
        default = "" if each.default is None else f"`{json.dumps(each.default)}`"
        rows.append(f"| `{each.name}` | {default} | {each.schema['description']} |")
    return "\n".join(rows) + "\n"


@cache
def generated() -> Mapping[Path, str]:
    """Return every generated file with the text that it should have."""
    files = {**copies(), VALUES: commented()}
    files[KUSTOMIZE / "crds" / "kustomization.yaml"] = _kustomization("crds.yaml")
    for name, values in zip(BASES, ({}, {"preset": "multi-tenant"}), strict=True):
        files[KUSTOMIZE / name / "controller.yaml"] = _dump(_neutral(render(merged(WITH_KEY, values))))
        files[KUSTOMIZE / name / "kustomization.yaml"] = _kustomization("../crds", "controller.yaml")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    files[PAGE] = f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"
    before, _, rest = README.read_text().partition(BEGIN)
    files[README] = f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"
    return files


def stale() -> list[str]:
    """Return the generated files that are out of date, missing or left over."""
    want = generated()
    folders = (CHART / "crds", CHART / "files", KUSTOMIZE)
    there = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    wrong = {path for path, text in want.items() if not path.exists() or path.read_text() != text}
    return sorted(str(path.relative_to(ROOT)) for path in wrong | (there - want.keys()))


def write() -> None:
    """Write every generated file."""
    TEMPLATE.write_text(template())  # the bases are renders of the chart
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _neutral(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return manifests without the labels of a Helm release, with an image that overlays replace by its name."""
    (container,) = find(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    container["image"] = container["image"].removeprefix(REGISTRY)
    for manifest in manifests:
        labels = manifest["metadata"]["labels"]
        del labels["helm.sh/chart"], labels["app.kubernetes.io/managed-by"]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME, "labels": _RESTRICTED}}
    return [namespace, *manifests]


_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def _kustomization(*resources: str) -> str:
    return _dump(
        [{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(resources)}]
    )


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists as well."""
        del indentless
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dump(documents: Sequence[Mapping[str, Any]]) -> str:
    return str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120))


def main(argv: Sequence[str]) -> int:
    """Write or check the generated files."""
    parser = argparse.ArgumentParser(prog="python -m e2e.charts.chart", description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true", help="write the generated files")
    mode.add_argument("--check", action="store_true", help="fail if a generated file is out of date")
    if parser.parse_args(argv).write:
        write()
        return 0
    wrong = stale()
    for path in wrong:
        print(f"{path} is out of date: run `make generate`", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
