"""Values of annotations, compared with what the parsers of ingress-nginx 1.15.1 made of them.

`parsed_values.json` has for each annotation the values by outcome: `taken` into the configuration, replaced by the
`default`, the location `closed` or the Ingress `refused`. Values under `stops nginx` pass the parsers, and nginx then
rejects its whole configuration; here they are refused, or close the path. `with` lists the other annotations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.findings import judged
from translation.nginx.tables.values import Values

_PARSED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("parsed_values.json").read_text("utf-8"))
_OUTCOMES: dict[str, set[str | None]] = {
    "taken": {None},
    "default": {"default"},
    "closed": {"closed"},
    "refused": {"refused"},
    "stops nginx": {"closed", "refused"},
}


def _differing(name: str) -> Iterator[str]:
    parsed = _PARSED[name]
    for expected, outcomes in _OUTCOMES.items():
        for value in parsed.get(expected, ()):
            found = {each.outcome for each in judged(Values({**parsed.get("with", {}), name: value}))}
            got = next((each for each in ("refused", "closed", "default") if each in found), None)
            # A value that says the same as the default makes no difference.
            if got not in outcomes and (got, expected) not in ((None, "default"), ("default", "taken")):
                yield f"{value!r}: expected {expected}, got {got}"


@pytest.mark.parametrize("name", sorted(_PARSED))
def test_a_value_has_the_outcome_that_the_parsers_of_ingress_nginx_give_it(name: str) -> None:
    assert list(_differing(name)) == []


def test_every_annotation_but_snippets_is_compared() -> None:
    assert {name for name in TABLE if "snippet" not in name} <= _PARSED.keys()
