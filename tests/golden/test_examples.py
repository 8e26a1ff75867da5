"""The examples for users have no problems and no unknown fields, and gateways accept the expected records.

`examples/<topic>/<name>.yaml` with `examples/backends` gives `tests/golden/examples/<topic>/<name>.yaml`.
"""

import random
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from apisix_ingress.kube.manifests import loader as manifests
from apisix_ingress.lint.findings import find
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.extensions import EXTENSION_ROWS
from apisix_ingress.model.kinds.gateway_api import GATEWAY_ROWS
from crds import KINDS, parse_spec, unknown_fields
from e2e.devgateway.adminapi.record_kinds import RESOURCES
from e2e.devgateway.schemas.record_checks import check_record
from reference.content.examples import FOLDER, TOPICS, Example, examples
from tests.golden.cases import document, load, normal, read, write
from tests.golden.driver import Outcome, settle
from translation.core.options import Options

WANT = Path(__file__).parent / "examples"
EXAMPLES = examples()
KUBERNETES = {"v1": {"ConfigMap", "Service"}, "networking.k8s.io/v1": {"Ingress"}}
GRANTS = {"gateway.networking.k8s.io/v1beta1": {"ReferenceGrant"}}
CUSTOM = {"apisix.apache.org/v2": set(KINDS)}
GATEWAYS = {
    version: {row.kind for row in (*GATEWAY_ROWS, *EXTENSION_ROWS) if row.api_version == version}
    for version in ("gateway.networking.k8s.io/v1", "apisix.apache.org/v1alpha1")
}

in_each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@dataclass(frozen=True)
class Given:
    """An example with everything that it refers to."""

    objects: tuple[JsonObject, ...]
    options: Options

    @classmethod
    def of(cls, example: Example) -> "Given":
        settings: dict[str, Any] = dict(example.settings)
        if "plugin_metadata" in settings:
            namespace, _, name = settings["plugin_metadata"].partition("/")
            settings["plugin_metadata"] = ObjectKey("ConfigMap", namespace, name)
        return cls((*backends(), *example.objects), Options(**settings))

    def outcome(self) -> Outcome:
        return settle(self.objects, self.options)


@cache
def backends() -> tuple[JsonObject, ...]:
    return tuple(item for path in sorted((FOLDER / "backends").glob("*.yaml")) for item in load(path))


@in_each_example
def test_an_example_yields_the_expected_records_without_problems(example: Example, update_golden: bool) -> None:
    got = document(Given.of(example).outcome())
    path = WANT / f"{example.name}.yaml"
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, got)
    assert normal(got) == read(path)
    assert [problem for problems in got["problems"].values() for problem in problems] == []
    assert got["records"]


@in_each_example
def test_the_order_of_the_objects_of_an_example_does_not_matter(example: Example) -> None:
    given = Given.of(example)
    mixed = random.Random(zlib.crc32(example.name.encode())).sample(given.objects, len(given.objects))
    got = document(settle(mixed, given.options))
    assert normal(got) == read(WANT / f"{example.name}.yaml")


@in_each_example
def test_an_example_has_a_description_and_known_kinds(example: Example) -> None:
    assert example.says.endswith((".", ":")), "begin the file with a comment that describes its subject"
    known = {**KUBERNETES, **GRANTS, **CUSTOM, **GATEWAYS}
    assert [each for each in example.objects if each["kind"] not in known.get(each["apiVersion"], ())] == []


@in_each_example
def test_fields_of_custom_resources_are_known_and_valid(example: Example) -> None:
    specs = [(each["kind"], each.get("spec")) for each in example.objects if each["kind"] in KINDS]
    assert [found for kind, spec in specs for found in unknown_fields(kind, spec)] == []
    assert len([parse_spec(kind, spec) for kind, spec in specs]) == len(specs)


@in_each_example
async def test_the_gateway_accepts_each_record(example: Example) -> None:
    """Uses the schemas and rules of the development gateway, which were recorded from a real one."""
    for record in Given.of(example).outcome().records.values():
        if record.key.kind in RESOURCES and record.key.kind != "plugin_metadata":
            body = {"id": record.key.id} | orjson.loads(record.payload)
            await check_record(RESOURCES[record.key.kind], body, None)


@in_each_example
def test_lint_reports_no_problem_in_an_example(example: Example) -> None:
    assert find(manifests.load([FOLDER / "backends", example.path]), Given.of(example).options) == ()


def test_every_golden_file_has_its_example() -> None:
    got = {str(path.relative_to(WANT).with_suffix("")) for path in WANT.rglob("*.yaml")}
    assert got == {example.name for example in EXAMPLES}


def test_every_folder_of_examples_has_a_topic() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders == {*TOPICS, "backends", "quickstart"}
    assert len(EXAMPLES) >= 40
