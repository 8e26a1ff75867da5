"""The comments of the chart's values.yaml, generated from the descriptions in its schema."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from e2e.charts.kinds import CHART

VALUES = CHART / "values.yaml"
BEGIN, CONTINUED = "# -- ", "#    "
WIDTH = 110
_KEY = re.compile(r"( *)([A-Za-z]\w*):")


def commented() -> str:
    """Return the file with the description of each value above it."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = dict(_descriptions(schema, schema["definitions"], ""))
    return "".join(f"{line}\n" for line in _lines(VALUES.read_text(), found))


def _descriptions(node: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, part in node["properties"].items():
        target = definitions[part["allOf"][0]["$ref"].rpartition("/")[2]] if "allOf" in part else part
        if "description" in part:
            yield prefix + name, part["description"]
        if "properties" in target:
            yield from _descriptions(target, definitions, f"{prefix}{name}.")


def _lines(text: str, descriptions: Mapping[str, str]) -> Iterator[str]:
    above: list[tuple[int, str]] = []
    is_generated = False
    for line in text.splitlines():
        bare = line.lstrip()
        is_generated = bare.startswith(BEGIN) or (is_generated and bare.startswith(CONTINUED))
        if is_generated:
            continue
        if key := _KEY.match(line):
            indent = len(key[1])
            above = [each for each in above if each[0] < indent] + [(indent, key[2])]
            yield from _comment(key[1], descriptions.get(".".join(name for _, name in above), ""))
        yield line


def _comment(indent: str, description: str) -> Iterator[str]:
    lines = textwrap.wrap(description, WIDTH - len(indent)) if description else []
    yield from (f"{indent}{CONTINUED if number else BEGIN}{line}" for number, line in enumerate(lines))
