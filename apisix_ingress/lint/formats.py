"""Findings as text, JSON, SARIF 2.1.0 for code scanning, and annotations of GitHub workflows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from apisix_ingress import __version__
from apisix_ingress.kube.manifests.loader import STDIN_NAME
from apisix_ingress.lint.findings import Finding
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.problem_codes.code import Code

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def text_lines(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Yield the findings in the format of compilers, each with its level, then a summary."""
    for item in findings:
        yield f"{item.file}:{item.line}:{item.column}: {item.level} {item.code}: {item.text}", item.level
    counts = Counter(item.level for item in findings)
    totals = [f"{counts[level]} {level}{'' if counts[level] == 1 else 's'}" for level in ("error", "warning")]
    found = ", ".join(totals) if counts["error"] or counts["warning"] else "no problems"
    missed = len({(item.file, item.object or item.line) for item in findings if item.level == "note"})
    objects = "1 object was" if missed == 1 else f"{missed} objects were"
    yield (f"{found}; {objects} not checked completely" if missed else found), ""


def as_json(findings: Sequence[Finding]) -> JsonObject:
    """Return the document that `lint -o json` prints."""
    return {
        "findings": [
            {
                "code": item.code.number,
                "name": item.code.word,
                "level": item.level,
                "file": item.file,
                "line": item.line,
                "column": item.column,
                "object": item.object,
                "path": item.path,
                "message": item.message,
            }
            for item in findings
        ]
    }


def as_sarif(findings: Sequence[Finding]) -> JsonObject:
    """Return a SARIF log: one run, a rule for each code that was found."""
    rules = sorted({item.code.number: item.code for item in findings}.items())
    index = {number: place for place, (number, _) in enumerate(rules)}
    driver = {"name": "apisix-ingress", "version": __version__, "rules": [_rule(code) for _, code in rules]}
    results = [_result(item, index[item.code.number]) for item in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> JsonObject:
    return {
        "id": code.number,
        "name": code.word,
        "shortDescription": {"text": f"{code.title}."},
        "fullDescription": {"text": code.effect},
        "help": {"text": f"{code.effect} {code.remedy}", "markdown": code.explanation},
    }


def _result(item: Finding, rule: int) -> JsonObject:
    region = {"startLine": item.line, "startColumn": item.column}
    place: JsonObject = {"physicalLocation": {"artifactLocation": {"uri": _uri(item.file)}, "region": region}}
    if item.object:
        place["logicalLocations"] = [{"fullyQualifiedName": f"{item.object} {item.path}".strip()}]
    return {
        "ruleId": item.code.number,
        "ruleIndex": rule,
        "level": item.level,
        "message": {"text": item.text},
        "locations": [place],
    }


def _uri(file: str) -> str:
    """Return a file as a URI, relative to the current folder if it is below that."""
    if file in ("", STDIN_NAME):
        return "stdin"
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix())


_WORKFLOW_LEVELS = {"note": "notice"}


def github_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield workflow commands, which GitHub shows next to the lines of a pull request."""
    for item in findings:
        fields = {"file": item.file, "line": item.line, "col": item.column, "title": str(item.code)}
        properties = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in fields.items())
        yield f"::{_WORKFLOW_LEVELS.get(item.level, item.level)} {properties}::{_escaped(item.text)}"


def _escaped(text: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
