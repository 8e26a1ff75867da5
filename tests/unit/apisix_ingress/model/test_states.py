"""One word for one state and one severity: the page, the commands and the docs use the same list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apisix_ingress.gateway.sync.observer import HEADLINES
from apisix_ingress.model.states import (
    CLUSTER_STATUSES,
    HOST_STATUSES,
    OBJECT_STATUSES,
    RECORD_STATUSES,
    RETIRED,
    SEVERITIES,
)
from apisix_ingress.statuspage.look import tone

ROOT = Path(__file__).parents[4]
WORDS = {*RECORD_STATUSES, *HOST_STATUSES, *OBJECT_STATUSES, *CLUSTER_STATUSES}
TEMPLATES = sorted((ROOT / "apisix_ingress/statuspage/templates").glob("*.html"))
STATED = re.compile(r"(?:badge|tone)\('([^']+)'|(?:state|status|serves) [=!]=+ '([^']*)'")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_name_only_known_states(path: Path) -> None:
    named = {first or second for first, second in STATED.findall(path.read_text(encoding="utf-8"))}
    assert named - WORDS - {*SEVERITIES, ""} == set()


def test_no_retired_word_is_a_state() -> None:
    assert WORDS.isdisjoint(RETIRED)
    assert set(RETIRED.values()) <= WORDS


@pytest.mark.parametrize("page", ["status-page.md", "reference/cli.md", "how-to/symptoms.md", "how-to/debugging.md"])
def test_docs_use_no_retired_word_for_a_state(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [word for word in RETIRED if re.search(rf"[`*\"]{word}[`*\"]", text)] == []


def test_the_docs_describe_every_state_of_a_host_and_every_severity() -> None:
    rows = re.findall(r"^\| ([a-z, ]+) \|", (ROOT / "docs/status-page.md").read_text(encoding="utf-8"), re.MULTILINE)
    described = {word for row in rows for word in row.split(", ")}
    assert {*HOST_STATUSES, *SEVERITIES} - described == set()


def test_every_reason_of_an_outage_is_a_state_of_a_cluster() -> None:
    assert set(HEADLINES) <= set(CLUSTER_STATUSES)


def test_every_severity_has_a_tone_and_healthy_states_are_not_alarming() -> None:
    assert {tone(each) for each in SEVERITIES} == {"bad", "warn"}
    assert {tone(each) for each in ("live", "redirect", "applied", "in sync", "ok")} == {"good"}
    assert {tone(each) for each in ("unknown", "not used")} == {"idle"}
