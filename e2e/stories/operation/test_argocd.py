"""The health check for Argo CD on the page about GitOps, run by the Lua engine of Argo CD."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.model.condition import Condition, aborted, synced
from e2e.argocd import health

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "gitops.md"
CHECK = "resource.customizations.health.apisix.apache.org_*"


def script() -> str:
    """Return the check from the page."""
    (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if CHECK in text]
    return str(yaml.safe_load(textwrap.dedent(block))["data"][CHECK])


def route(*conditions: Condition, generation: int = 2) -> Any:
    """Return an ApisixRoute with conditions as the controller writes them."""
    shown = [
        {
            "type": each.type,
            "status": each.status,
            "reason": each.reason,
            "message": each.message,
            "observedGeneration": each.generation,
        }
        for each in conditions
    ]
    status = {"status": {"conditions": shown}} if shown else {}
    return {"kind": "ApisixRoute", "metadata": {"name": "web", "generation": generation}, **status}


@pytest.mark.parametrize(
    ("item", "want"),
    [
        (route(), "Progressing: waiting for the controller"),
        (route(synced(2)), "Healthy: Sync Successfully"),
        (route(aborted(2, "no Service")), "Degraded: no Service"),
        (route(synced(1)), "Progressing: waiting for the controller"),
        (route(Condition("True", "Else", "fine", 2, type="Other")), "Progressing: waiting for the controller"),
    ],
)
def test_health_follows_the_condition_of_the_current_generation(item: Any, want: str) -> None:
    assert health(script(), [item]) == [want]


def policy(*accepted: str) -> Any:
    """Return a policy with a condition for each object that it affects."""
    conditions = [[{"type": "Accepted", "status": each, "message": "another one is older"}] for each in accepted]
    status = {"status": {"ancestors": [{"conditions": each} for each in conditions]}} if accepted else {}
    return {"apiVersion": "apisix.apache.org/v1alpha1", "kind": "HTTPRoutePolicy", "metadata": {"name": "p"}, **status}


def test_policies_are_healthy_unless_one_is_not_accepted() -> None:
    assert health(script(), [policy(), policy("True"), policy("True", "False")]) == [
        "Healthy: no condition is False",
        "Healthy: no condition is False",
        "Degraded: another one is older",
    ]
