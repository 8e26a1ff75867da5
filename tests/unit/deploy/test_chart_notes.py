"""Commands that the chart prints or describes for its own Pods."""

import re
from pathlib import Path

import pytest

CHART = Path(__file__).parents[3] / "deploy" / "charts" / "apisix-ingress"


@pytest.mark.parametrize("path", ["templates/NOTES.txt", "README.md"])
def test_commands_in_the_pod_read_the_settings_of_the_controller(path: str) -> None:
    deployment = (CHART / "templates/deployment.yaml").read_text()
    config = re.findall(r"args: \[run, --config, (\S+)\]", deployment)
    commands = re.findall(r"exec deployment/.*? -- (apisix-ingress [^`\n]+)", (CHART / path).read_text())
    assert commands
    assert [command.split("--config ")[1:] for command in commands] == [config for _ in commands]
