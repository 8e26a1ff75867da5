"""Documents that commands print with `-o json` match the published schemas, on real output."""

import json
from typing import Any

import jsonschema_rs
import pytest

from apisix_ingress.commands.app import MODULES
from apisix_ingress.diagnostics.reports.references import reference, with_references
from reference.documents import DOCUMENTS, files
from tests.flow.commandline import PROJECT, QUICKSTART
from tests.flow.surveying import SurveyHarness, plain, route, say

UNPUBLISHED = {
    "bundle": "an archive",
    "check-config": "one line",
    "crds": "a List of Kubernetes",
    "dashboard": "prints no document",
    "explain": "depends on the records of gateways",
    "migrate": "described in docs/how-to/from-ingress-nginx.md",
    "run": "prints no document",
    "verify": "depends on the responses",
    "version": "one line",
}


def test_every_command_has_a_schema_or_a_reason() -> None:
    assert set(MODULES) == {*DOCUMENTS, *UNPUBLISHED}


def check(command: str, document: Any) -> None:
    """Compare a document with its model, which accepts no other fields, and with the published schema."""
    DOCUMENTS[command].model_validate_json(json.dumps(document))
    published = json.loads((PROJECT / f"docs/reference/schemas/{command}.json").read_text())
    jsonschema_rs.validator_for(published).validate(document)


def test_published_schemas_are_those_of_the_documents() -> None:
    assert {path: (PROJECT / path).read_text() for path in files()} == files()


@pytest.mark.parametrize(
    "command",
    [
        "status --all",
        "wait ar default/web",
        "wait ar default/broken --timeout 10ms",
        "doctor",
        "diff",
        "diff --stat",
        "orphans",
        "adopt",
        "replace-2x",
        "tree",
        "lint broken.yaml",
        f"lint {QUICKSTART}",
        "translate broken.yaml",
        f"translate {QUICKSTART}",
        f"tree -f {PROJECT / 'examples' / 'stream'}",
    ],
)
async def test_a_document_matches_its_schema(harness: SurveyHarness, command: str) -> None:
    await harness.fill()
    broken = say(harness.server.put(route("broken", service="gone")), "False", "no Service gone")
    harness.server.put(broken)
    harness.server.put(plain("Service", "other", spec={"clusterIP": "10.96.0.2", "ports": [{"port": 80}]}))
    (id_, body), *_ = harness.gateway.records["routes"].items()
    harness.gateway.records["routes"]["mine"] = {"id": "mine", "uri": "/mine", "upstream_id": "gone"}
    if command == "adopt":
        del body["labels"]
        command = f"adopt routes/{id_}"
    (harness.cli.folder / "broken.yaml").write_text(json.dumps(route("one", service="gone")) + "\n---\nkind: [")
    name, *arguments = command.split()
    _, document = await harness.ask(name, *arguments)
    check(name, document)


def test_references_have_one_shape() -> None:
    web = {"kind": "ApisixRoute", "namespace": "default", "name": "web"}
    assert reference("ApisixRoute default/web") == web
    assert reference("IngressClass apisix") == {"kind": "IngressClass", "namespace": "", "name": "apisix"}
    body = {"owner": "ApisixRoute default/web"}
    given = {
        "items": [{"owner": "ApisixRoute default/web", "object": "", "before": body}],
        "ingresses": ["Ingress a/b"],
    }
    assert with_references(given) == {
        "items": [{"owner": web, "object": None, "before": body}],
        "ingresses": [{"kind": "Ingress", "namespace": "a", "name": "b"}],
    }
