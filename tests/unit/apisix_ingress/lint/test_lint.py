"""Findings of manifests: what is found, where it is, and how it is reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.findings import Finding, Suppression, find, parse_suppression
from apisix_ingress.lint.formats import as_json, as_sarif, github_lines, text_lines
from apisix_ingress.lint.rules import useless, watched
from apisix_ingress.model.problem_codes.table import CODES
from tests.factories import make_custom
from translation.core.options import Options

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
"""
ROUTE = """\
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata:
  name: web
spec:
  http:
    - name: all
      match:
        hosts: [web.example.org]
        paths: [/*]
      backends:
        - serviceName: %s
          servicePort: 80
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations:
    %s
spec:
  ingressClassName: apisix
  rules:
    - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
"""
PREFIX = "k8s.apisix.apache.org/"


def lint(*texts: str) -> list[tuple[str, str, int]]:
    """Return the word, path and line of each finding in documents."""
    found = find(load(["-"], stdin="---\n".join(texts).encode()), Options())
    return [(item.code.word, item.path, item.line) for item in found]


def annotated(*lines: str) -> str:
    return INGRESS % "\n    ".join(lines)


def make_finding(**fields: Any) -> Finding:
    values = {"file": "a b/web.yaml", "line": 3, "column": 5, "level": "error", "code": CODES["ServiceNotFound"]}
    texts = {"object": "ApisixRoute default/web", "path": "spec.http[0]", "message": "100%: no,\nwhy"}
    return Finding(**{**values, **texts, **fields})


def test_valid_manifests_have_no_findings() -> None:
    assert (
        lint(SERVICE, ROUTE % "web", annotated(f'{PREFIX}enable-cors: "true"', f"{PREFIX}cors-allow-origin: '*'")) == []
    )


def test_a_problem_is_at_its_field() -> None:
    assert lint(SERVICE, ROUTE % "none") == [("ServiceNotFound", "spec.http[0].backends[0].serviceName", 17)]


def test_a_field_without_effect_is_found() -> None:
    got = lint(SERVICE, (ROUTE % "web").replace("hosts:", "host:"))
    assert got == [("UnknownField", "spec.http[0].match.host", 14)]


def test_files_are_read_in_order_and_their_mistakes_have_places(tmp_path: Path) -> None:
    for name, text in {
        "a.yaml": "kind: [\n",
        "b.yaml": f"{SERVICE}---\napiVersion: v1\nkind: Service\n---\n{SERVICE}",
        "c.yaml": SERVICE,
        "d.yaml": "apiVersion: apisix.apache.org/v1\nkind: ApisixRoute\nmetadata: {name: web}\n",
        "e.yaml": f"{SERVICE.replace('web', 'x')}---\napiVersion: v1\nkind: Service\nmetadata: {{name: !x y}}\n",
    }.items():
        (tmp_path / name).write_text(text)
    found = find(load([tmp_path]), Options())
    got = [(Path(item.file).name, item.line, item.column, item.code.word) for item in found]
    assert got == [
        ("a.yaml", 2, 1, "ManifestInvalid"),
        ("b.yaml", 6, 1, "ManifestInvalid"),
        ("b.yaml", 9, 1, "ManifestInvalid"),
        ("c.yaml", 1, 1, "ManifestInvalid"),
        ("d.yaml", 1, 1, "KindNotRead"),
        ("e.yaml", 8, 18, "ManifestInvalid"),
    ]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (f'{PREFIX}enable-webskoket: "true"', "UnknownAnnotation"),
        (f"{PREFIX}cors-allow-origin: '*'", "UnknownAnnotation"),
        ("nginx.ingress.kubernetes.io/rewrite-target: /", "ForeignAnnotation"),
        ("nginx.ingress.kubernetes.io/whitelist-source-range: 0.0.0.0/0,::/0", None),
        ("example.org/anything: goes", None),
    ],
)
def test_an_annotation_without_effect_is_found(line: str, want: str | None) -> None:
    path = f"metadata.annotations[{line.partition(': ')[0]}]"
    assert lint(SERVICE, annotated(line)) == ([(want, path, 11)] if want else [])


def test_an_ingress_of_another_class_is_not_checked() -> None:
    assert lint(SERVICE, annotated("kubernetes.io/ingress.class: other")) == [("NotChecked", "", 6)]


def test_misspelt_annotation_names_the_nearest() -> None:
    text = f"{SERVICE}---\n{annotated(f'{PREFIX}enable-webskoket: x')}"
    (found,) = find(load(["-"], stdin=text.encode()), Options())
    assert found.message == f"has no effect: did you mean {PREFIX}enable-websocket?"


def test_field_that_the_class_annotation_overrules_is_found() -> None:
    text = annotated("kubernetes.io/ingress.class: apisix")
    assert lint(SERVICE, text) == []
    assert lint(SERVICE, text.replace("ClassName: apisix", "ClassName: other")) == [
        ("ClassTwice", "spec.ingressClassName", 13)
    ]


def test_a_rule_that_shadows_another_is_found() -> None:
    rule = (ROUTE % "web").partition("  http:\n")[2]
    twice = (ROUTE % "web") + rule.replace("name: all", "name: again")
    assert lint(SERVICE, twice) == [("MatchTwice", "spec.http[1].match", 20)]
    assert lint(SERVICE, twice + "      priority: 5\n") == []
    assert lint(SERVICE, twice.replace("paths: [/*]", "paths: [/a]", 1)) == []


def test_an_ingress_of_another_class_has_no_ineffective_annotations() -> None:
    text = annotated("nginx.ingress.kubernetes.io/rewrite-target: /", f"{PREFIX}odd: x")
    assert lint(SERVICE, text.replace("ClassName: apisix", "ClassName: nginx")) == [("NotChecked", "", 6)]


def test_an_ingress_without_our_annotations_has_no_unknown_ones() -> None:
    item = make_custom(kind="Ingress", annotations={f"{PREFIX}odd": "x"})
    assert list(useless(watched([item]), ())) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("AIX0101", True),
        ("ServiceNotFound", True),
        ("AIX0101=ApisixRoute default/web", True),
        ("AIX0101=ApisixRoute default/other", False),
        ("AIX0102", False),
    ],
)
def test_findings_are_suppressed_by_code_and_object(text: str, want: bool) -> None:
    assert parse_suppression(text).hits(make_finding()) is want


def test_suppression_of_an_unknown_code_is_refused() -> None:
    assert parse_suppression(" aix0101 = X y ") == Suppression(CODES["ServiceNotFound"], "X y")
    for text, want in (("AIX9999", "unknown code AIX9999"), ("=Pod a/b", "unknown code ''")):
        with pytest.raises(ValueError, match=want):
            parse_suppression(text)


def test_text_is_that_of_a_compiler() -> None:
    first, last = text_lines([make_finding(message="why")])
    text = "a b/web.yaml:3:5: error AIX0101 ServiceNotFound: ApisixRoute default/web: spec.http[0]: why"
    assert (first, last) == ((text, "error"), ("1 error, 0 warnings", ""))
    assert list(text_lines([])) == [("no problems", "")]


def test_the_summary_counts_objects_that_were_not_checked_once() -> None:
    notes = [make_finding(level="note", path=path) for path in ("spec.a", "spec.b")]
    assert list(text_lines(notes))[-1] == ("no problems; 1 object was not checked completely", "")
    two = [*notes, make_finding(level="note", object="Ingress default/a"), make_finding()]
    assert list(text_lines(two))[-1] == ("1 error, 0 warnings; 2 objects were not checked completely", "")


def test_json_holds_every_field() -> None:
    (got,) = as_json([make_finding()])["findings"]
    assert got["code"] == "AIX0101"
    assert set(got) == {"code", "name", "level", "file", "line", "column", "object", "path", "message"}


def test_annotations_of_workflows_are_escaped() -> None:
    (line,) = github_lines([make_finding(file="a,b:c.yaml")])
    place = "file=a%2Cb%3Ac.yaml,line=3,col=5,title=AIX0101 ServiceNotFound"
    assert line == f"::error {place}::ApisixRoute default/web: spec.http[0]: 100%25: no,%0Awhy"
    (line,) = github_lines([make_finding(level="note")])
    assert line.startswith("::notice file=")


@pytest.mark.parametrize(
    ("file", "want"),
    [
        ("a b/web.yaml", "a%20b/web.yaml"),
        ("standard input", "stdin"),
        ("", "stdin"),
        ("/elsewhere/web.yaml", "file:///elsewhere/web.yaml"),
        (str(Path.cwd() / "web.yaml"), "web.yaml"),
    ],
)
def test_sarif_names_files_as_uris(file: str, want: str) -> None:
    (result,) = as_sarif([make_finding(file=file)])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == want


def test_sarif_has_what_the_standard_requires() -> None:
    findings = [make_finding(), make_finding(level="warning", code=CODES["UnknownField"], object="", path="", line=9)]
    log = json.loads(json.dumps(as_sarif([*findings, make_finding(line=4)])))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["AIX0101", "AIX0801"]
    assert all(rule[part]["text"] for rule in rules for part in ("shortDescription", "fullDescription", "help"))
    # The help link in code scanning: the page of the codes, since a code has no page of its own.
    assert [rule["help"]["markdown"] for rule in rules] == [CODES[rule["name"]].explanation for rule in rules]
    assert "helpUri" not in rules[0]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        (place,) = result["locations"]
        region = place["physicalLocation"]["region"]
        assert min(region["startLine"], region["startColumn"]) >= 1
    assert "logicalLocations" not in run["results"][1]["locations"][0]


def test_sarif_without_findings_is_a_log_without_results() -> None:
    (run,) = as_sarif([])["runs"]
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
